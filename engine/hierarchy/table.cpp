#include "engine/collectives/costs.hpp"
#include "engine/hierarchy/costs.hpp"
#include "engine/hierarchy/groups.hpp"
#include "engine/hierarchy/rows.hpp"

namespace nearfield::hierarchy {
namespace {

bool always(const HierarchyShape&, const Call&) { return true; }
bool divisible(const HierarchyShape& shape, const Call& call) { return shape.node.size > 1 && call.bytes > 1; }

// Nobody can say what the host's own takes: it stands behind ours, and is worth a trial wherever it may be chosen.
double host_cost(const HierarchyShape& shape, const Call& call) { return 1.2 * leader_cost(shape, call); }
// As many times the bytes as a node has ranks.
double in_order_cost(const HierarchyShape& shape, const Call& call) {
  return leader_cost(shape, call) * shape.node.size;
}

// Nodes have more ranks than leaders.
template <int leaders>
bool more_than(const HierarchyShape& shape, const Call&) {
  return shape.least > leaders;
}
template <int leaders>
double leaders_cost(const HierarchyShape& shape, const Call& call) {
  return some_leaders_cost(shape, call, leaders);
}

// What all leaders of a node send and receive. Blocks of 1 MiB, 8 ranks on 2 CPUs of a Zen 5: leaders took five times
// the host's time, lanes 1.1.
bool stays_in_caches(const HierarchyShape& shape, const Call& call) {
  const auto through_leaders = 2.0 * shape.node.size * shape.ranks * double(call.bytes);
  return collectives::spilled(shape.node, through_leaders) == 0;
}

constexpr const char* leaders = "one rank of each node (the leader) uses the network for all ranks of the node";
constexpr const char* some_leaders =
    "some ranks of each node use the network, all others write to and read from their memory";
constexpr const char* in_lanes = "all ranks use the network at once, each for its share of the data";
constexpr const char* in_pipeline = "in chunks: the network transfers one chunk while nodes work on others";
constexpr const char* ordered = "combines operands in rank order on any number of nodes (NEARFIELD_REPRODUCIBLE)";
constexpr const char* hosts = "the host's own algorithm";

using enum Collective;
constexpr HierarchyAlgorithm rows[] = {
    {"leader", barrier, always, leader_cost, barrier_by_leaders, leaders},
    {"host", barrier, always, host_cost, nullptr, hosts},
    {"leader", bcast, always, leader_cost, bcast_by_leaders, leaders},
    {"lanes", bcast, lanes_apply, lanes_cost, bcast_by_lanes, in_lanes},
    {"pipelined", bcast, divisible, pipelined_cost, bcast_in_chunks, in_pipeline},
    {"host", bcast, always, host_cost, nullptr, hosts},
    {"leader", reduce, always, leader_cost, reduce_by_leaders, leaders},
    {"lanes", reduce, lanes_apply, lanes_cost, reduce_by_lanes, in_lanes},
    {"pipelined", reduce, divisible, pipelined_cost, reduce_in_chunks, in_pipeline},
    {"in-order", reduce, always, in_order_cost, reduce_in_order, ordered},
    {"host", reduce, always, host_cost, nullptr, hosts},
    {"leader", allreduce, always, leader_cost, reduce_by_leaders, leaders},
    {"lanes", allreduce, lanes_apply, lanes_cost, reduce_by_lanes, in_lanes},
    {"pipelined", allreduce, divisible, pipelined_cost, reduce_in_chunks, in_pipeline},
    {"in-order", allreduce, always, in_order_cost, reduce_in_order, ordered},
    {"host", allreduce, always, host_cost, nullptr, hosts},
    {"leader", allgather, always, leader_cost, allgather_by_leaders, leaders},
    {"lanes", allgather, lanes_apply, lanes_cost, allgather_by_lanes, in_lanes},
    {"host", allgather, always, host_cost, nullptr, hosts},
    {"leader", alltoall, always, leader_cost, alltoall_by_leaders, leaders, stays_in_caches},
    {"leaders-2", alltoall, more_than<2>, leaders_cost<2>, alltoall_by_two, some_leaders, stays_in_caches},
    {"leaders-4", alltoall, more_than<4>, leaders_cost<4>, alltoall_by_four, some_leaders, stays_in_caches},
    {"leaders-8", alltoall, more_than<8>, leaders_cost<8>, alltoall_by_eight, some_leaders, stays_in_caches},
    {"leaders-16", alltoall, more_than<16>, leaders_cost<16>, alltoall_by_sixteen, some_leaders, stays_in_caches},
    {"lanes", alltoall, lanes_apply, lanes_cost, alltoall_by_lanes, in_lanes},
    {"host", alltoall, always, host_cost, nullptr, hosts},
    {"leader", gather, always, leader_cost, gather_by_leaders, leaders},
    {"lanes", gather, lanes_apply, lanes_cost, gather_by_lanes, in_lanes},
    {"host", gather, always, host_cost, nullptr, hosts},
    {"leader", scatter, always, leader_cost, scatter_by_leaders, leaders},
    {"lanes", scatter, lanes_apply, lanes_cost, scatter_by_lanes, in_lanes},
    {"host", scatter, always, host_cost, nullptr, hosts},
    {"leader", reduce_scatter_block, always, leader_cost, reduce_scatter_block_by_leaders, leaders},
    {"lanes", reduce_scatter_block, lanes_apply, lanes_cost, reduce_scatter_block_by_lanes, in_lanes},
    {"in-order", reduce_scatter_block, always, in_order_cost, reduce_scatter_block_in_order, ordered},
    {"host", reduce_scatter_block, always, host_cost, nullptr, hosts},
};

}  // namespace

std::span<const HierarchyAlgorithm> rows_of(Collective collective) {
  const auto* first = std::begin(rows);
  while (first != std::end(rows) && first->collective != collective) ++first;
  const auto* last = first;
  while (last != std::end(rows) && last->collective == collective) ++last;
  return {first, last};
}

}  // namespace nearfield::hierarchy
