// What a hang report says of processes in every state, without any: the report is a function of what was found.
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/hang_report/report.hpp"
#include "engine/hang_report/sites.hpp"

namespace nearfield::hang_report {
namespace {

constexpr std::uint64_t now = 100'000'000'000;
enum Functions : unsigned { none, barrier, bcast, recv, test };
const char* name(unsigned function) {
  constexpr const char* names[] = {"MPI", "MPI_Barrier", "MPI_Bcast_c", "MPI_Recv", "MPI_Test"};
  return names[function];
}

ThreadSeen waiting(unsigned function, Item item, std::initializer_list<int> whom) {
  ThreadSeen f{.call = next_call(0, function), .known = true};
  item.function = std::uint16_t(function);
  f.what.since = now - 3'000'000'000;
  f.what.items = 1;
  f.what.pending = 1;
  f.what.item[0] = item;
  for (const int m : whom) f.what.awaited_member[f.what.awaited++] = std::int16_t(m);
  return f;
}
Item collective(std::uint64_t context, int root = Item::none, std::uint64_t bytes = Item::unknown) {
  Item item{.kind = AwaitedKind::collective, .root = root, .size = 4, .context = context, .bytes = bytes};
  return item;
}
ProcessSeen process(int rank, ThreadSeen found) { return {.rank = rank, .process = 100 + rank, .threads = {found}}; }

std::string text(const std::vector<ProcessSeen>& all) {
  std::string lines;
  for (const std::string& line : report(all, now, name)) lines += line + "\n";
  return lines;
}
void has(const std::string& text, const char* part) {
  EXPECT_NE(text.find(part), text.npos) << part << " in\n" << text;
}

TEST(Report, GroupsWhoWaitsForTheSame) {
  std::vector<ProcessSeen> all;
  for (int r = 0; r < 5; ++r) all.push_back(process(r, waiting(barrier, collective(7), {5})));
  all.push_back(process(5, {.call = next_call(0, recv) - 1, .unchanged = 2}));
  const std::string lines = text(all);
  has(lines, "ranks 0-4 wait in MPI_Barrier on communicator 0007 of 4 ranks (3.0 s)");
  has(lines, "rank 5 (process 105) is outside of MPI, last in MPI_Recv (2.0 s)");
  has(lines, "=> ranks 0-4 wait in MPI_Barrier on communicator 0007 of 4 ranks; rank 5 is outside of MPI");
}

TEST(Report, SaysWhoseCpusOthersWant) {
  std::vector<ProcessSeen> all = {process(0, waiting(barrier, collective(7), {1})), process(1, {})};
  all[0].threads[0].what.contention = 1;
  has(text(all),
      "rank 0 (process 100) waits in MPI_Barrier on communicator 0007 of 4 ranks, its CPUs wanted by others");
  // Who waits under contention waits with the others.
  all = {process(0, waiting(barrier, collective(7), {2})), process(1, waiting(barrier, collective(7), {2})),
         process(2, {})};
  all[1].threads[0].what.contention = 1;
  has(text(all), "ranks 0, 1 wait in MPI_Barrier on communicator 0007 of 4 ranks, the CPUs of rank 1 wanted by others");
}

TEST(Report, NamesTheDeadAndThoseWhoHaveLeft) {
  std::vector<ProcessSeen> all = {process(0, waiting(barrier, collective(7), {1, 2})), process(1, {}), process(2, {})};
  all[1].state = ProcessSeen::State::dead;
  all[2].state = ProcessSeen::State::left;
  const std::string lines = text(all);
  has(lines, "rank 0 waits in MPI_Barrier on communicator 0007 of 4 ranks; rank 1 has ended");
  has(lines, "rank 0 waits in MPI_Barrier on communicator 0007 of 4 ranks; rank 2 has called MPI_Finalize");
}

TEST(Report, ComparesCollectivesOfOneCommunicatorOnly) {
  has(text({process(0, waiting(barrier, collective(7), {1})), process(1, waiting(bcast, collective(7, 0), {0}))}),
      "mismatch on communicator 0007 of 4 ranks: rank 0 calls MPI_Barrier, rank 1 MPI_Bcast");
  has(text({process(0, waiting(bcast, collective(7, 1, 8), {1})),
            process(1, waiting(bcast, collective(7, 1, 16), {0}))}),
      "calls MPI_Bcast of 8 bytes, rank 1 of 16");
  const std::string two =
      text({process(0, waiting(barrier, collective(7), {1})), process(1, waiting(bcast, collective(8, 0), {0}))});
  EXPECT_EQ(two.find("mismatch"), two.npos) << two;
  has(two, "deadlock: ranks 0, 1 wait for each other");
}

TEST(Report, FindsNoMismatchWhereOneIsAheadOfTheOther) {
  const ProcessSeen late = process(2, {.call = next_call(0, recv) - 1, .unchanged = 2});
  std::string lines = text(
      {process(0, waiting(bcast, collective(7, 0), {2})), process(1, waiting(barrier, collective(7), {0, 2})), late});
  EXPECT_EQ(lines.find("mismatch"), lines.npos) << lines;
  has(lines, "rank 0 waits in MPI_Bcast on communicator 0007 of 4 ranks; rank 2 is outside of MPI");
  has(lines, "rank 1 waits in MPI_Barrier on communicator 0007 of 4 ranks; rank 0 waits in MPI_Bcast");
  Item list = collective(7, Item::none, 8), longer = collective(7, Item::none, 16);
  list.alike = longer.alike = false;
  lines = text({process(0, waiting(bcast, list, {1})), process(1, waiting(bcast, longer, {0}))});
  EXPECT_EQ(lines.find("mismatch"), lines.npos) << lines;
}

TEST(Report, FindsMismatchesInACircle) {
  std::vector<ProcessSeen> all;
  for (int r = 0; r < 3; ++r) all.push_back(process(r, waiting(bcast, collective(7, (r + 1) % 3), {(r + 1) % 3})));
  const std::string lines = text(all);
  has(lines, "mismatch on communicator 0007 of 4 ranks: rank 0 calls MPI_Bcast with root 1, rank 1 with root 2");
  has(lines, "deadlock: ranks 0-2 wait for each other");
  all[2].threads[0].what.item[0] = {.kind = AwaitedKind::receive, .function = bcast, .member = 0};
  EXPECT_EQ(text(all).find("mismatch"), text(all).npos) << text(all);
}

TEST(Report, ComparesNoCallWithOneThatOverlapsIt) {
  ThreadSeen wait = waiting(test, collective(7), {1});
  wait.what.item[0].function = barrier;
  const std::string lines = text({process(0, wait), process(1, waiting(bcast, collective(7, 0), {0}))});
  EXPECT_EQ(lines.find("mismatch"), lines.npos) << lines;
  has(lines, "deadlock: ranks 0, 1");
}

TEST(Report, FindsNoDeadlockWhereAThreadMayEndIt) {
  std::vector<ProcessSeen> all = {process(0, waiting(barrier, collective(7), {1})),
                                  process(1, waiting(barrier, collective(8), {0}))};
  has(text(all), "deadlock: ranks 0, 1 wait for each other");
  all[0].threads.push_back({.call = next_call(0, recv) - 1, .unchanged = 2});
  std::string lines = text(all);
  EXPECT_EQ(lines.find("deadlock"), lines.npos) << lines;
  has(lines, "rank 0 (process 100) waits in MPI_Barrier on communicator 0007 of 4 ranks, while another thread of it");
  all[0].threads.back() = waiting(recv, {}, {1});
  has(text(all), "deadlock: ranks 0, 1 wait for each other");
  all[0].unseen = 2;
  lines = text(all);
  EXPECT_EQ(lines.find("deadlock"), lines.npos) << lines;
  has(lines, "ranks, 2 threads are not seen");
}

TEST(Report, NamesTheReceiveOfASendAndReceive) {
  ThreadSeen f = waiting(recv, {.kind = AwaitedKind::send, .member = 1, .tag = 1, .context = 7, .bytes = 4}, {1});
  f.what.item[1] = {.kind = AwaitedKind::receive, .function = recv, .member = 1, .tag = 2, .context = 7, .bytes = 4};
  f.what.items = 2;
  const ProcessSeen away = process(1, {.call = next_call(0, recv) - 1, .unchanged = 2});
  has(text({process(0, f), away}), "rank 0 waits in MPI_Recv for a message of 4 bytes from rank 1, tag 2");
  for (Item& item : f.what.item) item.member = Item::none, item.peer = 5;
  std::strcpy(f.what.item[0].communicator, "MPI_COMM_WORLD");
  has(text({process(0, f), away}), "MPI_Recv of 4 bytes to rank 5, tag 1, on MPI_COMM_WORLD and a receive");
  has(text({process(0, waiting(bcast, collective(7, Item::itself), {1})), away}), "root MPI_ROOT");
}

// Members are numbered on their node; who reads the report knows ranks.
TEST(Report, NamesPartnersByTheirRanks) {
  const Item item{.kind = AwaitedKind::receive, .member = 1, .tag = 2, .context = 7, .bytes = 4};
  const ProcessSeen away = process(5, {.call = next_call(0, recv) - 1, .unchanged = 2});
  has(text({process(4, waiting(recv, item, {1})), away}),
      "rank 4 waits in MPI_Recv for a message of 4 bytes from rank 5");
}

TEST(Report, TellsProgramsThatLookAgainAndAgain) {
  has(text({process(0, waiting(barrier, collective(7), {1})),
            process(1, {.call = next_call(0, test), .unchanged = 0.01})}),
      "rank 1 goes on calling MPI, lastly MPI_Test");
}

TEST(Report, SaysWhatHasComeInstead) {
  Item message{.kind = AwaitedKind::receive, .member = 1, .tag = 5, .context = 7, .bytes = 4};
  ThreadSeen f = waiting(recv, message, {1});
  f.what.lost = 1, f.what.lost_member = 1, f.what.lost_tag = 6, f.what.lost_context = 7;
  has(text({process(0, f), process(1, {.call = next_call(0, recv) - 1, .unchanged = 2})}),
      "a message with tag 6 has come from it, which nothing receives");
}

TEST(Site, IsKnownByItsPathWhateverTheDirectory) {
  const Site site = site_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
  EXPECT_TRUE(site.object.starts_with('/') && site.object.find("libc") != site.object.npos) << site.object;
  CallState state;
  EXPECT_EQ(site_text(state), "");
  std::strcpy(state.object, "/a b/program");
  state.offset = 16;
  EXPECT_EQ(site_text(state), "/a b/program+0x10");
  std::strcpy(state.symbol, "work()");
  EXPECT_EQ(site_text(state), "/a b/program+0x10 (work())");
}

TEST(CallPost, IsReadAsItWasPublishedAndOfThatCallOnly) {
  static CallPost post;
  CallState state, read;
  EXPECT_FALSE(post.read(read, 0));
  state.call = 17;
  state.items = 3;
  state.item[2].tag = 99;
  post.publish(state);
  EXPECT_TRUE(post.read(read, 17));
  EXPECT_EQ(read.item[2].tag, 99);
  EXPECT_FALSE(post.read(read, 18));
}

TEST(CallPost, TellsOfACallWithoutASiteNothingOfTheOneBeforeIt) {
  static CallPost post;
  CallState first, second, read;
  first.call = 1;
  first.has_site = true;
  std::strcpy(first.object, "/program");
  std::strcpy(first.script, "script.py:3");
  post.publish(first);
  ASSERT_TRUE(post.read(read, 1));
  EXPECT_STREQ(read.object, "/program");
  second.call = 2;
  post.publish(second);
  ASSERT_TRUE(post.read(read, 2));
  EXPECT_STREQ(read.object, "");
  EXPECT_STREQ(read.script, "");
}

}  // namespace
}  // namespace nearfield::hang_report
