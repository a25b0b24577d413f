// Teams and messages on memory that only XPMEM reaches, by a stand-in for its library (tests/xpmem).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/choosing/choose.hpp"
#include "engine/messages/messenger.hpp"
#include "tests/engine/file_memory.hpp"
#include "tests/engine/team.hpp"

extern "C" int xpmem_stand_in_pieces(void), xpmem_stand_in_grants(void), xpmem_stand_in_segments(void);

namespace nearfield {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_processes;

constexpr std::size_t bytes = 100'000;

// `value` in all of it, as doubles.
void fill(std::byte* at, double value) { std::fill_n(reinterpret_cast<double*>(at), bytes / 8, value); }
bool holds(const std::byte* at, double value) {
  const auto* const doubles = reinterpret_cast<const double*>(at);
  return std::all_of(doubles, doubles + bytes / 8, [&](double each) { return each == value; });
}

collectives::Call sum(std::byte* send, std::byte* recv) {
  collectives::Call call{};
  call.collective = collectives::Collective::allreduce;
  call.send = send;
  call.recv = recv;
  call.bytes = bytes / 8 * 8;
  call.count = bytes / 8;
  call.type = reducing::Type::f64;
  call.op = reducing::Op::sum;
  call.fold = reducing::fold(call.op, call.type);
  return call;
}

// One allreduce by the row `direct`, whatever it takes; whether the result is right. `reached`: nobody needed copies.
bool reduce(Team& team, std::byte* send, std::byte* recv, double value, bool& reached) {
  fill(send, value + team.rank());
  fill(recv, -1);
  const auto rows = collectives::algorithms(collectives::Collective::allreduce);
  const auto named = [&](const char* name) {
    return std::ranges::find_if(rows, [&](const auto& row) { return std::string_view(row.name) == name; });
  };
  const collectives::Call call = sum(send, recv);
  reached = collectives::run(team.context(), *named("direct"), call);
  if (!reached) collectives::run(team.context(), *named("partitioned"), call);
  const int n = team.size();
  return holds(recv, n * value + n * (n - 1) / 2);
}

bool direct(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  bool reached = false;
  auto* const send = testing::file_memory(bytes);
  auto* const recv = testing::file_memory(bytes);
  for (int i = 0; i < 20; ++i)
    if (!reduce(**team, send, recv, i, reached) || !reached) return false;
  return xpmem_stand_in_pieces() == 2 * (size - 1) && xpmem_stand_in_grants() == size - 1;
}

TEST(Xpmem, ReachesAnyMemory) {
  for (const int size : {2, 3, 5}) EXPECT_EQ(run_processes(size, 60, direct), 0);
}

TEST(Xpmem, WhereItIsLeftOutNothingIsReached) {
  Settings settings;
  settings.ways_left_out = *reach::parse_left_out("^xpmem");
  const int failed = run_processes(
      2, 60,
      [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
        auto team = creation::create_team(process, rank, size, bootstrap);
        bool reached = true;
        auto* const send = testing::file_memory(bytes);
        return team && reduce(**team, send, testing::file_memory(bytes), 1, reached) && !reached &&
               xpmem_stand_in_segments() == 0;
      },
      settings);
  EXPECT_EQ(failed, 0);
}

// What is attached does not grow with the buffers that a program has used, and all members forget the same.
TEST(Xpmem, KeepsAFewPieces) {
  const int failed = run_processes(2, 100, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    std::vector<std::byte*> buffers;
    for (int i = 0; i < 300; ++i) buffers.push_back(testing::file_memory(bytes));
    bool reached = false;
    for (int i = 0; i < 600; ++i) {
      const std::size_t which = i % 7 == 0 ? 1 : std::size_t(i) % 299;
      if (!reduce(**team, buffers[which], buffers[which + 1], i, reached) || !reached) return false;
      if (xpmem_stand_in_pieces() > 100) return false;
    }
    return true;
  });
  EXPECT_EQ(failed, 0);
}

// One rank's failure is everybody's: all turn to copies, at once and for good.
TEST(Xpmem, AnyFailureTakesTheWayOut) {
  for (const char* what :
       {"make:2", "get:1", "attach:1", "attach:2", "attach:4", "detach:1", "release:1", "remove:1"}) {
    const int failed = run_processes(3, 60, [what](Process& first, PageBootstrap& bootstrap, int rank, int size) {
      if (rank == 1) setenv("XPMEM_FAILS", what, 1);
      auto process = Process::create(first.settings());  // after that was set
      if (!process) return false;
      auto team = creation::create_team(**process, rank, size, bootstrap);
      if (!team) return false;
      std::byte* const memory[] = {testing::file_memory(bytes), testing::file_memory(bytes),
                                   testing::file_memory(bytes), testing::file_memory(bytes)};
      int reached = 0;
      for (int i = 0; i < 20; ++i) {
        bool now = false;
        if (!reduce(**team, memory[i % 4], memory[(i + 1) % 4], i, now)) return false;
        reached += now;
      }
      bootstrap.meet();
      const bool never = std::string_view(what).starts_with("make") || std::string_view(what).starts_with("get");
      const bool always = !std::string_view(what).starts_with("attach") && !never;
      return never ? reached == 0 : always ? reached == 20 : reached < 20;
    });
    EXPECT_EQ(failed, 0) << what;
  }
}

TEST(Xpmem, NothingIsHeldInTheEnd) {
  const int failed = run_processes(2, 60, [](Process& first, PageBootstrap& bootstrap, int rank, int size) {
    auto process = Process::create(first.settings());
    auto team = creation::create_team(**process, rank, size, bootstrap);
    if (!team) return false;
    bool reached = false;
    auto* const send = testing::file_memory(bytes);
    if (!reduce(**team, send, testing::file_memory(bytes), 1, reached) || !reached) return false;
    bootstrap.meet();
    team->reset();
    process->reset();
    return xpmem_stand_in_pieces() == 0 && xpmem_stand_in_grants() == 0 && xpmem_stand_in_segments() == 1;  // `first`
  });
  EXPECT_EQ(failed, 0);
}

// Memory that no process may have from another is not told of: an access would end the peer.
TEST(Xpmem, IsNotAskedForWhatItCannotMap) {
  if (!testing::cma_works()) GTEST_SKIP() << "process_vm_readv is denied here";  // it is how we look
  const int failed = run_processes(2, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    auto* const nobodys = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if ((*team)->context().exchange.begin({rank ? nobodys : testing::file_memory(bytes), bytes}, {}, 0)) return false;
    (*team)->context().exchange.end();
    if (xpmem_stand_in_pieces() > 1) return false;
    bool reached = false;
    auto* const send = testing::file_memory(bytes);
    return reduce(**team, send, testing::file_memory(bytes), 1, reached) && reached;
  });
  EXPECT_EQ(failed, 0);
}

TEST(Xpmem, CarriesLargeMessages) {
  Settings settings;
  settings.protocol = Protocol::mapped;
  const int failed = run_processes(
      2, 60,
      [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
        auto team = creation::create_team(process, rank, size, bootstrap);
        if (!team) return false;
        auto messenger = messages::Messenger::create(**team, bootstrap, false);
        if (!messenger) return false;
        auto* const memory = testing::file_memory(bytes);
        for (int i = 0; i < 10; ++i) {
          fill(memory, rank ? i : -1);
          messages::Request request;
          request.is_send = rank == 1;
          request.member = 1 - rank;
          request.envelope = {5, 1, 7};
          request.data = {memory, bytes / 8 * 8, {}};
          (*messenger)->start(request);
          (*messenger)->wait(request);
          if (!holds(memory, i)) return false;
        }
        bootstrap.meet();
        return rank == 1 || ((*messenger)->counts().direct == 10 && xpmem_stand_in_pieces() == 1);
      },
      settings);
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace nearfield
