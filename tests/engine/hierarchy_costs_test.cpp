// Estimates of algorithms over several nodes, and the figures of the network that they come from.
#include "engine/hierarchy/costs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/collectives/operations.hpp"
#include "engine/tuning/constants.hpp"

namespace nearfield::hierarchy {
namespace {

using collectives::Collective;

constexpr Collective spread_ones[] = {Collective::barrier,   Collective::bcast,     Collective::reduce,
                                      Collective::allreduce, Collective::allgather, Collective::alltoall,
                                      Collective::gather,    Collective::scatter,   Collective::reduce_scatter_block};

struct Estimate {
  const char* name;
  double (*cost)(const HierarchyShape&, const Call&);
};
constexpr Estimate estimates[] = {{"leader", leader_cost}, {"lanes", lanes_cost}, {"pipelined", pipelined_cost}};

Call call_of(Collective which, std::size_t bytes) {
  Call call{which, bytes};
  call.count = std::max<std::size_t>(bytes / 8, 1);
  return call;
}

Machine machine_with(const Network& network) {
  Machine machine;
  machine.cpus = 1024;
  machine.cache = 1 << 30;
  machine.own = 1 << 20;
  machine.network = network;
  return machine;
}

HierarchyShape shape_of(int nodes, int each, const Machine& machine = machine_with({})) {
  return {team::shape_for(each, machine), nodes, nodes * each};
}

// 100 Gbit/s, of which one rank can fill a quarter.
constexpr Network needs_four{.latency = 1500, .message = 300, .byte = 0.32, .node_message = 10, .node_byte = 0.08};

TEST(NetworkPhases, CostWhatTheHostsAlgorithmsSendAtLeast) {
  const HierarchyShape s = shape_of(8, 4, machine_with(needs_four));
  const double n = 1 << 20, byte = 0.32;
  EXPECT_DOUBLE_EQ(net_barrier(s), 3 * 1500);
  EXPECT_DOUBLE_EQ(net_messages(s, 1, 1, 0), 1500);
  EXPECT_DOUBLE_EQ(net_messages(s, 1, 11, 0), 1500 + 10 * 300);
  EXPECT_DOUBLE_EQ(net_bcast(s, 1, 1), 3 * (1500 + byte));
  EXPECT_DOUBLE_EQ(net_bcast(s, 1, n), 3 * (1500 + n * byte));
  for (const auto all : {net_gather, net_allgather, net_alltoall}) {
    EXPECT_GE(all(s, 1, n), 7 * n * byte);
    EXPECT_LE(all(s, 1, n), 7 * n * byte + 7 * (1500 + 300));
  }
}

TEST(NetworkPhases, AreNothingOnOneNode) {
  const HierarchyShape s = shape_of(1, 4);
  EXPECT_EQ(net_barrier(s), 0);
  for (const auto phase : {net_bcast, net_gather, net_allgather, net_alltoall}) EXPECT_EQ(phase(s, 4, 1000), 0);
}

TEST(NetworkPhases, ShareWhatTheNodeBears) {
  const HierarchyShape s = shape_of(2, 8, machine_with(needs_four));
  const double n = 1 << 20;
  auto bytes_only = [&](int lanes) { return net_messages(s, lanes, 1, n) - net_messages(s, lanes, 1, 0); };
  EXPECT_DOUBLE_EQ(bytes_only(4), bytes_only(1));  // the network bears four of them
  EXPECT_DOUBLE_EQ(bytes_only(8), 2 * bytes_only(1));
  // Many short messages: one rank's work until the adapter is the bound.
  EXPECT_DOUBLE_EQ(net_messages(s, 8, 100, 0), net_messages(s, 1, 100, 0));
  EXPECT_GT(net_messages(s, 64, 100, 0), 2 * net_messages(s, 1, 100, 0));
}

TEST(Estimates, GrowWithBytesAndNodes) {
  for (const Collective which : spread_ones) {
    for (const auto& row : estimates) {
      if (which == Collective::barrier && row.cost != leader_cost) continue;
      double before = 0;
      for (std::size_t bytes = 8; bytes <= 64 << 20; bytes *= 8) {
        const double cost = row.cost(shape_of(16, 8), call_of(which, bytes));
        // Rows of a node may be estimated to cost a trifle less for more, where one takes over from another.
        EXPECT_GE(cost, 0.98 * before) << collectives::name(which) << " " << row.name << " " << bytes;
        EXPECT_LT(cost, impossible);
        before = cost;
      }
      before = 0;
      for (const int nodes : {2, 4, 32, 1024}) {
        const double cost = row.cost(shape_of(nodes, 8), call_of(which, 4096));
        EXPECT_GT(cost, before) << collectives::name(which) << " " << row.name << " " << nodes;
        before = cost;
      }
    }
  }
}

TEST(Estimates, PreferLanesForLargeDataWhereOneCannotFillTheNetwork) {
  const HierarchyShape s = shape_of(16, 8, machine_with(needs_four));
  for (const Collective which : {Collective::bcast, Collective::allreduce, Collective::alltoall, Collective::allgather})
    EXPECT_LT(lanes_cost(s, call_of(which, 4 << 20)), 0.6 * leader_cost(s, call_of(which, 4 << 20)))
        << collectives::name(which);
}

TEST(Estimates, PreferLeadersForTheLeastOfDataWhereMessagesAreDear) {
  const HierarchyShape s = shape_of(16, 8, machine_with({.node_message = 300}));
  for (const Collective which : {Collective::bcast, Collective::allreduce, Collective::alltoall})
    EXPECT_LT(leader_cost(s, call_of(which, 8)), lanes_cost(s, call_of(which, 8))) << collectives::name(which);
}

TEST(Estimates, KnowWhatAlgorithmsCannotDo) {
  const HierarchyShape s = shape_of(4, 8);
  EXPECT_GE(lanes_cost(s, call_of(Collective::barrier, 0)), impossible);
  EXPECT_GE(pipelined_cost(s, call_of(Collective::barrier, 0)), impossible);
  for (const auto& row : estimates) EXPECT_GE(row.cost(s, call_of(Collective::scan, 8)), impossible);
  HierarchyShape unequal = s;
  unequal.equal = false;
  const auto call = call_of(Collective::bcast, 16 << 20);
  EXPECT_GE(lanes_cost(unequal, call), impossible);
  EXPECT_LE(pipelined_cost(unequal, call), leader_cost(unequal, call));
}

TEST(Estimates, KnowHoursFromNever) {
  const auto call = call_of(Collective::alltoall, 64 << 20);
  for (const auto& row : estimates) {
    EXPECT_GT(row.cost(shape_of(1024, 96), call), 1e12) << row.name;  // twenty minutes
    EXPECT_LT(row.cost(shape_of(1024, 96), call), impossible) << row.name;
  }
}

TEST(Estimates, OfRanksThatAreAloneAreThoseOfTheNetwork) {
  const HierarchyShape s = shape_of(8, 1);
  const auto call = call_of(Collective::alltoall, 4096);
  EXPECT_DOUBLE_EQ(leader_cost(s, call), net_alltoall(s, 1, 4096));
  EXPECT_DOUBLE_EQ(lanes_cost(s, call), leader_cost(s, call));
}

// A network and nodes that need about as long hide half of the whole; where one needs nearly everything there is
// nothing to hide, and short messages are not cut.
TEST(Pipeline, TakesAsManyChunksAsPay) {
  const auto call = call_of(Collective::allreduce, 4 << 20);
  const HierarchyShape slow = shape_of(16, 8, machine_with({.byte = 8, .node_byte = 8}));
  Network alike;
  const Phases fast = lanes_phases(shape_of(16, 8), call);
  alike.byte = alike.node_byte = 0.0825 * fast.on_nodes() / fast.network;
  const HierarchyShape even = shape_of(16, 8, machine_with(alike));
  for (const HierarchyShape& s : {slow, even, shape_of(16, 8)}) {
    EXPECT_EQ(chunks(s, call_of(Collective::allreduce, 8)), 1);
    EXPECT_GE(chunks(s, call), 1);
    EXPECT_LE(chunks(s, call), 16);
    const Phases whole = lanes_phases(s, call);
    EXPECT_LE(pipelined_cost(s, call), whole.all());
    EXPECT_GE(pipelined_cost(s, call), std::max(whole.network, whole.on_nodes()) * 0.99);
  }
  EXPECT_GT(chunks(even, call), 2);
  EXPECT_LT(pipelined_cost(even, call), 0.85 * lanes_cost(even, call));
  EXPECT_GT(pipelined_cost(slow, call), 0.95 * lanes_cost(slow, call));
}

TEST(Network, IsAmongTheFiguresOfAMachine) {
  const std::string path = ::testing::TempDir() + "network-" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "line = 80\n";
  auto old = read_machine(path);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->network.byte, Network{}.byte);  // of a file that knows no network
  Machine machine;
  machine.network = {90'000, 1'500, 8.1, 800, 8.05};
  ASSERT_TRUE(store_machine(path, machine));
  auto read = read_stored_machine(path);
  unlink(path.c_str());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->network.latency, 90'000);
  EXPECT_EQ(read->network.message, 1'500);
  EXPECT_EQ(read->network.byte, 8.1);
  EXPECT_EQ(read->network.node_message, 800);
  EXPECT_EQ(read->network.node_byte, 8.05);
}

}  // namespace
}  // namespace nearfield::hierarchy
