// What a roll call says of processes in every state, without any: the report is a function of what was found.
#include <gtest/gtest.h>

#include <string>

#include "engine/roll/report.hpp"

namespace nearfield::roll {
namespace {

constexpr std::uint64_t now = 100'000'000'000;
enum Functions : unsigned { none, barrier, bcast, recv, test };
const char* name(unsigned function) {
  constexpr const char* names[] = {"MPI", "MPI_Barrier", "MPI_Bcast_c", "MPI_Recv", "MPI_Test"};
  return names[function];
}

Found waiting(unsigned function, Item item, std::initializer_list<int> whom) {
  Found f{.call = next_call(0, function), .told = true};
  item.function = std::uint16_t(function);
  f.what.since = now - 3'000'000'000;
  f.what.items = 1;
  f.what.pending = 1;
  f.what.item[0] = item;
  for (const int m : whom) f.what.awaited_member[f.what.awaited++] = std::int16_t(m);
  return f;
}
Item collective(std::uint64_t context, int root = Item::none, std::uint64_t bytes = Item::unknown) {
  Item item{.kind = Kind::collective, .root = root, .size = 4, .context = context, .bytes = bytes};
  return item;
}
Attendance process(int rank, Found found) { return {.rank = rank, .process = 100 + rank, .threads = {found}}; }

std::string text(const std::vector<Attendance>& all) {
  std::string lines;
  for (const std::string& line : report(all, now, name)) lines += line + "\n";
  return lines;
}
void has(const std::string& text, const char* part) {
  EXPECT_NE(text.find(part), text.npos) << part << " in\n" << text;
}

TEST(Report, GroupsWhoWaitsForTheSame) {
  std::vector<Attendance> all;
  for (int r = 0; r < 5; ++r) all.push_back(process(r, waiting(barrier, collective(7), {5})));
  all.push_back(process(5, {.call = next_call(0, recv) - 1, .unchanged = 2}));
  const std::string lines = text(all);
  has(lines, "ranks 0-4 wait in MPI_Barrier on communicator 0007 of 4 ranks (3.0 s)");
  has(lines, "rank 5 (process 105) is outside of MPI, last in MPI_Recv (2.0 s)");
  has(lines, "=> ranks 0-4 wait in MPI_Barrier on communicator 0007 of 4 ranks; rank 5 is outside of MPI");
}

TEST(Report, NamesTheDeadAndThoseWhoHaveLeft) {
  std::vector<Attendance> all = {process(0, waiting(barrier, collective(7), {1, 2})), process(1, {}), process(2, {})};
  all[1].state = Attendance::State::dead;
  all[2].state = Attendance::State::left;
  const std::string lines = text(all);
  has(lines, "rank 0 waits in MPI_Barrier on communicator 0007 of 4 ranks; rank 1 has died");
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

TEST(Report, TellsProgramsThatLookAgainAndAgain) {
  has(text({process(0, waiting(barrier, collective(7), {1})),
            process(1, {.call = next_call(0, test), .unchanged = 0.01})}),
      "rank 1 goes on calling MPI, lastly MPI_Test");
}

TEST(Report, SaysWhatHasComeInstead) {
  Item message{.kind = Kind::receive, .member = 1, .tag = 5, .context = 7, .bytes = 4};
  Found f = waiting(recv, message, {1});
  f.what.lost = 1, f.what.lost_member = 1, f.what.lost_tag = 6, f.what.lost_context = 7;
  has(text({process(0, f), process(1, {.call = next_call(0, recv) - 1, .unchanged = 2})}),
      "a message with tag 6 has come from it, which nothing receives");
}

TEST(Post, IsReadAsItWasToldAndOfThatCallOnly) {
  static Post post;
  Told told, read;
  EXPECT_FALSE(post.read(read, 0));
  told.call = 17;
  told.item[2].tag = 99;
  post.tell(told);
  EXPECT_TRUE(post.read(read, 17));
  EXPECT_EQ(read.item[2].tag, 99);
  EXPECT_FALSE(post.read(read, 18));
}

}  // namespace
}  // namespace nearfield::roll
