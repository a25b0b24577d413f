#include "engine/hierarchy/costs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/collectives/costs.hpp"

namespace nearfield::hierarchy {
namespace {

using collectives::Collective;

double rounds(const HierarchyShape& s) { return double(std::bit_width(unsigned(s.nodes - 1))); }
double others(const HierarchyShape& s) { return double(s.nodes - 1); }

// ns per byte that each of `lanes` sends.
double per_byte(const HierarchyShape& s, int lanes) {
  const Network& net = s.node.machine.network;
  return std::max(net.byte, net.node_byte * lanes);
}

// Each of `lanes` ranks of a node moves `bytes`, for so many nanoseconds each in cache, among `all` of them.
double moving(const HierarchyShape& s, int lanes, double bytes, double in_cache, double all) {
  team::Shape at_work = s.node;
  at_work.size = lanes;
  if (lanes == 1) at_work.ranks_per_cpu = 1;
  return collectives::moving(at_work, bytes, in_cache, all * lanes);
}
// Operands that it combines, `bytes` of them in all.
double folding(const HierarchyShape& s, int lanes, double bytes) {
  return moving(s, lanes, bytes, s.node.machine.fold, bytes);
}
// Blocks that it puts in another order, a line for the shortest.
double sorting(const HierarchyShape& s, int lanes, double blocks, double bytes) {
  if (s.node.size < 2) return 0;
  const double touched = blocks * std::max(bytes, 64.0);
  return moving(s, lanes, touched, s.node.machine.near_pair.own, 2 * touched);
}

// The cheapest way that the ranks of one node have, blocks or vectors of `bytes`.
double on_node(const HierarchyShape& s, Collective which, double bytes) {
  if (s.node.size < 2) return 0;
  Call call{which, std::max<std::size_t>(std::size_t(std::ceil(bytes)), 1)};
  call.count = std::max<std::size_t>(call.bytes / 8, 1);
  double least = impossible;
  for (const auto& row : collectives::algorithms(which))
    if (row.applies(s.node, call)) least = std::min(least, row.cost(s.node, call));
  return least;
}

}  // namespace

double net_messages(const HierarchyShape& s, int lanes, double messages, double bytes) {
  if (s.nodes < 2) return 0;
  const Network& net = s.node.machine.network;
  const double turns = std::max(1.0, lanes / std::max(s.node.machine.cpus, 1.0));  // of ranks that share CPUs
  const double apart = std::max(net.message * turns, net.node_message * lanes);
  return net.latency + std::max(messages * apart - net.message, 0.0) + bytes * per_byte(s, lanes);
}

// Dissemination.
double net_barrier(const HierarchyShape& s) { return rounds(s) * net_messages(s, 1, 1, 0); }

// A binomial tree whatever the length: what hosts do in calls that do not block (measured: docs/dev/network-model.md).
double net_bcast(const HierarchyShape& s, int lanes, double bytes) {
  return rounds(s) * net_messages(s, lanes, 1, bytes);
}

// Linear, as that of blocks of several lengths is: the root's rank takes in everything.
double net_gather(const HierarchyShape& s, int lanes, double bytes) {
  return net_messages(s, lanes, others(s), others(s) * bytes);
}

// Bruck's or by doubling, or around a ring.
double net_allgather(const HierarchyShape& s, int lanes, double bytes) {
  const double doubled = rounds(s) * net_messages(s, lanes, 1, 0) + others(s) * bytes * per_byte(s, lanes);
  return std::min(doubled, others(s) * net_messages(s, lanes, 1, bytes));
}

// Everybody sends everything at once.
double net_alltoall(const HierarchyShape& s, int lanes, double bytes) {
  return net_messages(s, lanes, others(s), others(s) * bytes);
}

double net_reduce(const HierarchyShape& s, int lanes, double bytes) {
  const double whole = net_gather(s, lanes, bytes) + folding(s, lanes, s.nodes * bytes);
  return std::min(whole, net_reduce_scatter_block(s, lanes, bytes / s.nodes) + net_gather(s, lanes, bytes / s.nodes));
}

double net_allreduce(const HierarchyShape& s, int lanes, double bytes) {
  const double whole = net_allgather(s, lanes, bytes) + folding(s, lanes, s.nodes * bytes);
  return std::min(whole,
                  net_reduce_scatter_block(s, lanes, bytes / s.nodes) + net_allgather(s, lanes, bytes / s.nodes));
}

double net_reduce_scatter_block(const HierarchyShape& s, int lanes, double bytes) {
  return net_alltoall(s, lanes, bytes) + folding(s, lanes, s.nodes * bytes);
}

Phases leader_phases(const HierarchyShape& s, const Call& call) {
  const double n = collectives::in_bytes(call), here = s.node.size, all = s.ranks;
  const double sorted = s.blocks ? 0 : sorting(s, 1, all, n);  // by rank and by node are one order for blocks
  using enum Collective;
  switch (call.collective) {
    case barrier: return {on_node(s, barrier, 0), net_barrier(s), on_node(s, barrier, 0)};
    case bcast: return {0, net_bcast(s, 1, n), on_node(s, bcast, n)};
    case reduce: return {on_node(s, reduce, n), net_reduce(s, 1, n), 0};
    case allreduce: return {on_node(s, reduce, n), net_allreduce(s, 1, n), on_node(s, bcast, n)};
    case allgather: return {on_node(s, gather, n), net_allgather(s, 1, here * n), sorted + on_node(s, bcast, all * n)};
    case alltoall: {
      const double to_nodes = sorting(s, 1, here * all, n);
      return {on_node(s, gather, all * n) + to_nodes, net_alltoall(s, 1, here * here * n),
              to_nodes + on_node(s, scatter, all * n)};
    }
    case gather: return {on_node(s, gather, n), net_gather(s, 1, here * n), sorted};
    case scatter: return {sorted, net_gather(s, 1, here * n), on_node(s, scatter, n)};
    case reduce_scatter_block:
      return {on_node(s, reduce, all * n) + sorted, net_reduce_scatter_block(s, 1, here * n), on_node(s, scatter, n)};
    default: return {0, impossible, 0};
  }
}

Phases lanes_phases(const HierarchyShape& s, const Call& call) {
  const int lanes = s.node.size;
  const double n = collectives::in_bytes(call), share = n / lanes, nodes = s.nodes, all = s.ranks;
  using enum Collective;
  if (!s.equal) return {0, impossible, 0};
  switch (call.collective) {
    case bcast: return {on_node(s, scatter, share), net_bcast(s, lanes, share), on_node(s, allgather, share)};
    case reduce:
      return {on_node(s, reduce_scatter_block, share), net_reduce(s, lanes, share), on_node(s, gather, share)};
    case allreduce:
      return {on_node(s, reduce_scatter_block, share), net_allreduce(s, lanes, share), on_node(s, allgather, share)};
    case allgather:  // to their places at once where those of a node follow each other
      return {
          0, net_allgather(s, lanes, n),
          s.blocks ? nodes * on_node(s, allgather, n) : on_node(s, allgather, nodes * n) + sorting(s, lanes, all, n)};
    case alltoall:
      return {2 * sorting(s, lanes, all, n) + on_node(s, alltoall, nodes * n), net_alltoall(s, lanes, lanes * n), 0};
    case gather: return {0, net_gather(s, lanes, n), on_node(s, gather, nodes * n) + sorting(s, 1, all, n)};
    case scatter: return {sorting(s, 1, all, n) + on_node(s, scatter, nodes * n), net_gather(s, lanes, n), 0};
    case reduce_scatter_block:
      return {(s.blocks ? 0 : sorting(s, lanes, all, n)) + nodes * on_node(s, reduce_scatter_block, n),
              net_reduce_scatter_block(s, lanes, n), 0};
    default: return {0, impossible, 0};
  }
}

namespace {

constexpr std::size_t least_chunk = 256;  // bytes

struct Pipeline {
  int chunks;
  Phases chunk;
  // The first chunk fills the pipeline, each of the others takes as long as the slower of the two.
  double cost() const {
    return chunks == 1 ? chunk.all() : chunk.all() + (chunks - 1) * std::max(chunk.network, chunk.on_nodes());
  }
};

Pipeline best_pipeline(const HierarchyShape& s, const Call& call) {
  if (call.collective == Collective::barrier) return {1, {0, impossible, 0}};
  const auto phases = s.equal ? lanes_phases : leader_phases;
  const Phases whole = phases(s, call);
  Pipeline best{1, whole};
  for (const int count : {2, 3, 4, 6, 8, 12, 16}) {
    Call part = call;
    part.bytes = call.bytes / std::size_t(count);
    if (part.bytes < least_chunk) break;
    Phases chunk = phases(s, part);
    // What the whole takes from memory, a chunk does not find in a cache.
    chunk.before = std::max(chunk.before, whole.before / count);
    chunk.after = std::max(chunk.after, whole.after / count);
    if (const Pipeline other{count, chunk}; other.cost() < best.cost()) best = other;
  }
  return best;
}

}  // namespace

int chunks(const HierarchyShape& s, const Call& call) { return best_pipeline(s, call).chunks; }

Phases chunk_phases(const HierarchyShape& s, const Call& call) { return best_pipeline(s, call).chunk; }

double leader_cost(const HierarchyShape& s, const Call& call) { return leader_phases(s, call).all(); }
// Everybody puts its blocks where leaders send from, and takes what it gets out of where they receive.
double some_leaders_cost(const HierarchyShape& s, const Call& call, int leaders) {
  const double n = collectives::in_bytes(call), here = s.node.size;
  const double copied = sorting(s, s.node.size, s.ranks, n);
  return 2 * copied + 4 * on_node(s, Collective::barrier, 0) + net_alltoall(s, leaders, here * here * n / leaders);
}
double lanes_cost(const HierarchyShape& s, const Call& call) { return lanes_phases(s, call).all(); }
double pipelined_cost(const HierarchyShape& s, const Call& call) { return best_pipeline(s, call).cost(); }

}  // namespace nearfield::hierarchy
