// Lines that cross, and steps, of every algorithm, counted (counter.hpp), beside what docs/scale.md says they are.
//
// counts_test --print MEMBERS GROUP PACKAGE BYTES   prints the counts instead, a JSON line for each row
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

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
  std::size_t bytes;  // of a vector, or of a block
};
struct Row {
  const Algorithm* algorithm;
  Counted calls;  // of `measured` calls of all members
};
constexpr int warm = 8, measured = 8;

// An array in a member's segment, as a program's is in the shared heap.
std::byte* array(Process& process, std::size_t bytes) {
  return process.segment().base() + *process.arena().allocate(std::max<std::size_t>(bytes, 64), 4096);
}

// Programs write what they send before each call, and read what they get after it.
void write(std::byte* at, std::size_t bytes, int with) { std::memset(at, with, bytes); }
unsigned read(const std::byte* at, std::size_t bytes) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; i += 64) sum += unsigned(at[i]);
  return sum;
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
        const Operation& op = operation(algorithm.collective);
        const std::size_t given = op.gives.blocks(rank, size, 0) * job.bytes,
                          got = op.gets.amount == Amount::part ? job.bytes / std::size_t(size)
                                                               : op.gets.blocks(rank, size, 0) * job.bytes;
        const Call call = call_of(algorithm.collective, job.bytes, send, recv);
        if (!algorithm.applies(context.shape(), call)) continue;
        Counted before;
        bool ran = true;
        for (int i = 0; i < warm + measured; ++i) {
          if (i == warm || i == 0) {
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

int print(const Job& job) {
  for (const Row& row : count(job)) {
    const auto each = [](std::uint64_t n) { return nearfield::rounded(double(n) / measured, 2); };
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
    return nearfield::collectives::print({std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]),
                                          std::strtoull(argv[5], nullptr, 10)});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
