// Lines that cross, and steps, of every algorithm, counted (counter.hpp), beside what docs/dev/scale.md says they are.
//
// counts_test --print MEMBERS GROUP PACKAGE BYTES   prints the counts instead, a JSON line for each row
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/choosing/choose.hpp"
#include "engine/collectives/table.hpp"
#include "tests/engine/counting/counter.hpp"
#include "tests/engine/team.hpp"
#include "tools/json.hpp"

namespace nearfield::collectives {
namespace {

using team::Process;
using testing::Counted;
using testing::PageBootstrap;

struct Job {
  int members, group, package;
  std::size_t bytes;           // of a vector, or of a block
  int calls = 8;               // that are counted, after as many others
  const char* only = nullptr;  // algorithms of that name; nullptr: all
};
struct Row {
  const Algorithm* algorithm;
  Counted calls;  // of all members
};

// An array in a member's segment, as a program's is in the shared heap.
std::byte* array(Process& process, std::size_t bytes) {
  return process.segment().base() + *process.arena().allocate(std::max<std::size_t>(bytes, 64), 4096);
}

// Programs write what they send before each call, and read what they get after it.
void write(std::byte* at, std::size_t bytes, int with) { std::memset(at, with, bytes); }
void read(const volatile std::byte* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) static_cast<void>(at[i]);
}

Call call_of(Collective which, std::size_t bytes, const std::byte* send, std::byte* recv) {
  Call call{which, bytes};
  call.count = bytes / 4;
  call.type = reducing::Type::u32;
  call.op = reducing::Op::sum;
  call.fold = reducing::fold(call.op, call.type);
  call.send = send;
  call.recv = recv;
  return call;
}

// All rows that apply, one after the other; as the first member has counted them.
std::vector<Row> count(const Job& job) {
  std::vector<Row> rows;
  Settings settings;
  settings.wait = WaitStyle::spin;  // as ranks that have a CPU each
  settings.choosing = Choosing::model;
  settings.machine.cores = job.group;
  settings.machine.sockets = (job.members + job.package - 1) / job.package;
  settings.machine.cpus = job.package * settings.machine.sockets;
  settings.machine.line = 200, settings.machine.near = 60;
  testing::begin_counting(job.members, job.group, job.package);
  const auto body = [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto team = creation::create_team(process, rank, size, bootstrap);
    if (!team) return false;
    process.policy().spins = 1;  // there are fewer CPUs than members: hand them on
    context::CollectiveContext& context = (*team)->context();
    testing::count_in(process.segment().base(), process.segment().size());
    const std::size_t all = job.bytes * std::size_t(size);
    std::byte *const send = array(process, all), *const recv = array(process, all);
    for (std::size_t c = 0; c < collective_count; ++c)
      for (const Algorithm& algorithm : algorithms(Collective(c))) {
        if (job.only && std::strcmp(job.only, algorithm.name) != 0) continue;
        const Operation& op = operation(algorithm.collective);
        const std::size_t given = op.gives.blocks(rank, size, 0) * job.bytes,
                          got = op.gets.amount == Amount::part ? job.bytes / std::size_t(size)
                                                               : op.gets.blocks(rank, size, 0) * job.bytes;
        const Call call = call_of(algorithm.collective, job.bytes, send, recv);
        if (!algorithm.applies(context.shape(), call)) continue;
        Counted before;
        bool ran = true;
        for (int i = 0; i < 2 * job.calls; ++i) {
          if (i == job.calls) {
            bootstrap.meet();
            before = testing::counted();
            bootstrap.meet();
          }
          testing::count_as(rank);
          write(send, given, i);
          ran &= run(context, algorithm, call);
          read(recv, got);
          testing::count_as(-1);
        }
        bootstrap.meet();
        if (rank == 0 && ran) rows.push_back({&algorithm, testing::counted() - before});
        bootstrap.meet();
      }
    team::Team::close(std::move(*team));
    return true;
  };
  EXPECT_EQ(0, testing::run_threads(job.members, 300, body, settings));
  testing::end_counting();
  return rows;
}

// ---- what docs/dev/scale.md says
// Of a vector or block of `lines` lines, as multiples of these: lines that all members together move per call, what the
// program writes before and reads after it included. p: members.
struct Formula {
  const char* op;
  std::vector<std::string_view> algorithms;
  double (*moved)(double p);
};
const std::vector<Formula>& formulas() {
  constexpr auto once = [](double p) { return p - 1; };
  constexpr auto folded = [](double p) { return p - 1 + (p - 1) / p; };
  constexpr auto twice = [](double p) { return 2 * (p - 1); };
  constexpr auto all = [](double p) { return p * (p - 1); };
  constexpr auto below = [](double p) { return p * (p - 1) / 2; };
  static const std::vector<Formula> table = {
      {"bcast", {"line", "slots", "tree", "pipeline", "direct", "direct-pull"}, once},
      {"reduce", {"line", "slots", "pipeline"}, once},
      {"reduce", {"partitioned", "direct", "direct-blocks"}, folded},
      {"allreduce", {"slots", "oneshot"}, all},
      {"allreduce", {"partitioned", "direct", "direct-blocks", "direct-pull"}, twice},
      {"allgather", {"slots", "rounds", "pull-", "push-"}, all},
      {"alltoall", {"rounds", "pull-", "push-"}, all},
      {"gather", {"line", "slots", "pipeline", "direct"}, once},
      {"scatter", {"line", "slots", "pipeline", "direct"}, once},
      {"reduce_scatter_block", {"rounds", "direct"}, all},
      {"reduce_scatter", {"slots", "rounds", "direct"}, once},
      {"scan", {"below", "rounds"}, below},
      {"scan", {"chain"}, once},
      {"exscan", {"below", "rounds"}, below},
  };
  return table;
}
// The same of a call without data to speak of: lines of words that members meet by.
const std::vector<Formula>& formulas_of_short_calls() {
  constexpr auto once = [](double p) { return p - 1; };
  constexpr auto twice = [](double p) { return 2 * (p - 1); };
  constexpr auto all = [](double p) { return p * (p - 1); };
  constexpr auto below = [](double p) { return p * (p - 1) / 2; };
  static const std::vector<Formula> table = {
      {"barrier", {"slots"}, all},
      {"bcast", {"line", "slots", "tree"}, once},
      {"reduce", {"line", "tree"}, once},
      {"allreduce", {"slots"}, all},
      {"allreduce", {"tree"}, twice},
      {"allgather", {"slots"}, all},
      {"gather", {"line", "tree"}, once},
      {"scatter", {"line", "slots"}, once},
      {"reduce_scatter", {"line", "tree"}, twice},
      {"reduce_scatter", {"slots"}, all},
      {"scan", {"line", "below"}, below},
      {"exscan", {"line", "below"}, below},
  };
  return table;
}

const Formula* find(const std::vector<Formula>& table, const Algorithm& row) {
  const std::string_view called = row.name;
  for (const Formula& formula : table)
    if (name(row.collective) == std::string_view(formula.op))
      for (const std::string_view each : formula.algorithms)
        if (called == each || (each.ends_with('-') && called.starts_with(each))) return &formula;
  return nullptr;
}

class Members : public ::testing::TestWithParam<int> {};

// Rows `together`, where whoever runs does all: tiles depend on who comes when, and each line of data moves at most
// thrice. On a loaded machine members look at words for long, which only adds lines, so the least of some counts
// counts.
TEST_P(Members, LongVectorsMoveAsOftenAsTheFormulasSay) {
  constexpr std::size_t bytes = 64 << 10;
  const double p = GetParam(), lines = bytes / 64.0;
  std::size_t compared = 0;
  const Job job{.members = GetParam(), .group = GetParam(), .package = GetParam(), .bytes = bytes, .calls = 2};
  for (const Row& row : count(job)) {
    SCOPED_TRACE(std::string(name(row.algorithm->collective)) + ", " + row.algorithm->name);
    const double moved = double(row.calls.moved()) / job.calls / lines, words = 8 * p * p / lines;
    if (const Formula* const formula = find(formulas(), *row.algorithm)) {
      EXPECT_GE(moved, 0.98 * formula->moved(p) - 1e-9);
      EXPECT_LE(moved, 1.03 * formula->moved(p) + words);
      ++compared;
    } else {
      Job alone = job;
      alone.only = row.algorithm->name;
      double least = moved;
      for (int again = 0; again < 3 && least > 3 * p * (p - 1) + words; ++again)
        for (const Row& each : count(alone))
          if (each.algorithm == row.algorithm) least = std::min(least, double(each.calls.moved()) / job.calls / lines);
      EXPECT_LE(least, 3 * p * (p - 1) + words);
    }
  }
  EXPECT_GE(compared, 35u);
}

TEST_P(Members, ShortCallsMoveAsManyLinesAsTheFormulasSay) {
  const double p = GetParam();
  std::size_t compared = 0;
  const Job job{.members = GetParam(), .group = GetParam(), .package = GetParam(), .bytes = 8};
  for (const Row& row : count(job)) {
    const Formula* const formula = find(formulas_of_short_calls(), *row.algorithm);
    if (!formula) continue;
    SCOPED_TRACE(std::string(name(row.algorithm->collective)) + ", " + row.algorithm->name);
    // A line that is awaited comes again when it has been written meanwhile.
    const double moved = double(row.calls.moved()) / job.calls;
    EXPECT_GE(moved, 0.9 * formula->moved(p) - 1);
    EXPECT_LE(moved, 1.3 * formula->moved(p) + 2 * p);
    ++compared;
  }
  EXPECT_EQ(compared, GetParam() == 3 ? 15u : 20u);  // three members have no trees
}

INSTANTIATE_TEST_SUITE_P(Counts, Members, ::testing::Values(3, 5, 8, 16));

// Lines cross from one last-level cache to another once for each cache and direction, and from package to package too.
// A member that is late looks again, which only adds lines, so the least of some counts counts.
TEST(Trees, CrossOncePerCache) {
  constexpr int members = 16, group = 4, package = 8, groups = members / group, packages = members / package;
  const Job job{.members = members, .group = group, .package = package, .bytes = 8, .only = "tree"};
  struct Crossings {
    double caches = 1e9, packages = 1e9;
  };
  std::map<std::string_view, Crossings> least;
  for (int again = 0; again < 4; ++again)
    for (const Row& row : count(job)) {
      Crossings& of = least[name(row.algorithm->collective)];
      of.caches = std::min(of.caches, double(row.calls.far + row.calls.packages) / job.calls);
      of.packages = std::min(of.packages, double(row.calls.packages) / job.calls);
    }
  for (const auto& [op, ways] : {std::pair("allreduce", 2.0), {"bcast", 1.0}, {"reduce", 1.0}}) {
    SCOPED_TRACE(op);
    ASSERT_TRUE(least.contains(op));
    EXPECT_GE(least[op].caches, ways * (groups - 1) - 0.5);
    EXPECT_LE(least[op].caches, ways * (groups - 1) + 2);
    EXPECT_LE(least[op].packages, ways * (packages - 1) + 1);
  }
}

int print(const Job& job) {
  for (const Row& row : count(job)) {
    const auto each = [&](std::uint64_t n) { return nearfield::rounded(double(n) / job.calls, 2); };
    nearfield::print({{"op", name(row.algorithm->collective)},
                      {"algorithm", row.algorithm->name},
                      {"members", job.members},
                      {"group", job.group},
                      {"package", job.package},
                      {"bytes", job.bytes},
                      {"near", each(row.calls.near)},
                      {"far", each(row.calls.far)},
                      {"packages", each(row.calls.packages)},
                      {"taken", each(row.calls.taken)},
                      {"first", each(row.calls.first)},
                      {"steps", each(row.calls.steps)}});
  }
  return 0;
}

}  // namespace
}  // namespace nearfield::collectives

int main(int argc, char** argv) {
  if (argc == 6 && !std::strcmp(argv[1], "--print"))
    return nearfield::collectives::print(
        {std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), std::strtoull(argv[5], nullptr, 10)});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
