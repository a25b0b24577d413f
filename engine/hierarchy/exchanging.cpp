// Alltoall and Reduce_scatter_block over nodes.
//
//   leader   blocks for a node are put together by the leader: one message for each pair of nodes, taken apart by the
//            leader there
//   lanes    a node's ranks first exchange what belongs to each other's lanes; then one message for each pair of nodes
//            and lane, whose blocks are then combined (Reduce_scatter_block) or put where they belong
#include "engine/hierarchy/blocks.hpp"
#include "engine/hierarchy/groups.hpp"

namespace nearfield::hierarchy {

using Room = Hierarchy::Room;

void alltoall_by_leaders(Hierarchy& s, const Call& call) {
  constexpr int lane = 0;
  const Placement& places = s.placement();
  const std::size_t b = call.bytes, p = std::size_t(s.locals()), all = std::size_t(s.size()) * b;
  const bool leads = s.in_lane(lane);
  const Room one(s, leads ? p * all : 0), other(s, leads ? p * all : 0);
  s.open(lane);
  s.node_gather(call.send, one.data(), all, 0);
  if (leads) {
    // What `local` here has for (or has got from) the ranks of a node, in the order of locals here, then there.
    const PartsOfNodes parts = by_ranks(places, p * b);
    for (int node = 0; node < s.nodes(); ++node) {
      std::byte* into = other.data() + parts.at[std::size_t(node)];
      for (std::size_t local = 0; local < p; ++local)
        in_node_order(places, node, [&](std::size_t, std::size_t rank, std::size_t blocks) {
          std::memcpy(into, one.data() + local * all + rank * b, blocks * b);
          into += blocks * b;
        });
    }
    s.start(0, lane, {.move = Move::alltoall, .from = parts.in(other.data()), .into = parts.in(one.data())});
    s.wait(0);
    for (int node = 0; node < s.nodes(); ++node) {
      const std::byte* from = one.data() + parts.at[std::size_t(node)];
      for (int there = 0; there < places.ranks_on(node); ++there)
        for (std::size_t local = 0; local < p; ++local, from += b)
          std::memcpy(other.data() + local * all + std::size_t(places.rank(node, there)) * b, from, b);
    }
  }
  s.node_scatter(other.data(), call.recv, all, 0);
}

// Below, a node phase for each node costs more than putting blocks in order by a copy.
constexpr std::size_t short_blocks = 2048;

void alltoall_by_lanes(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const std::size_t b = call.bytes, p = std::size_t(s.locals()), n = std::size_t(s.nodes()), all = n * p * b;
  const auto* send = static_cast<const std::byte*>(call.send);
  auto* const recv = static_cast<std::byte*>(call.recv);
  const bool one_by_one = places.blocks() && b >= short_blocks;
  const Room one(s, all), other(s, one_by_one ? 0 : all);
  PartsOfNodes given = equal_parts(places, p * b, p * b), got = given;
  s.open_all();
  // What goes along our lane: of each node's part, the blocks that the ranks here have for the rank that we are there.
  if (one_by_one) {
    for (std::size_t node = 0; node < n; ++node) {
      const bool own = int(node) == s.node();
      s.node_alltoall(send + node * p * b, (own ? recv : one.data()) + node * p * b, b);
      if (own) given.bytes[node] = got.bytes[node] = 0;
    }
  } else {
    if (!places.striped()) {
      rank_order_to_lanes(places, one.data(), send, b);
      send = one.data();
    }
    s.node_alltoall(send, other.data(), n * b);
    for (std::size_t node = 0; node < n; ++node)
      for (std::size_t local = 0; local < p; ++local)
        std::memcpy(one.data() + (node * p + local) * b, other.data() + (local * n + node) * b, b);
  }
  std::byte* const into = places.blocks() ? recv : other.data();
  s.start(0, s.local(), {.move = Move::alltoall, .from = given.in(one.data()), .into = got.in(into)});
  s.wait(0);
  if (into != recv) to_rank_order(places, recv, into, b);
}

namespace {

// What nodes have given of our part, in their order.
void fold_nodes(const Call& call, const std::byte* operands, std::size_t nodes, std::size_t count, void* result) {
  std::vector<const void*> ins(nodes);
  const std::size_t bytes = count * reducing::size_of(call.type);
  for (std::size_t node = 0; node < nodes; ++node) ins[node] = operands + node * bytes;
  call.fold(&result, 1, ins.data(), nodes, count);
}

}  // namespace

void reduce_scatter_block_by_leaders(Hierarchy& s, const Call& call) {
  constexpr int lane = 0;
  const Placement& places = s.placement();
  const std::size_t b = call.bytes, p = std::size_t(s.locals()), n = std::size_t(s.nodes());
  const std::size_t all = std::size_t(s.size()) * b;
  const bool leads = s.in_lane(lane);
  const Room partial(s, leads ? all : 0), ordered(s, leads && !places.blocks() ? all : 0);
  const Room operands(s, leads ? n * p * b : 0), result(s, leads ? p * b : 0);
  s.open(lane);
  s.node_reduce(call, call.send, partial.data(), std::size_t(s.size()) * call.count, 0);
  if (leads) {
    if (ordered.data()) to_node_order(places, ordered.data(), partial.data(), b);
    const PartsOfNodes given = by_ranks(places, b), got = equal_parts(places, p * b, p * b);
    s.start(0, lane,
            {.move = Move::alltoall,
             .from = given.in(ordered.data() ? ordered.data() : partial.data()),
             .into = got.in(operands.data())});
    s.wait(0);
    fold_nodes(call, operands.data(), n, p * call.count, result.data());
  }
  s.node_scatter(result.data(), call.recv, b, 0);
}

void reduce_scatter_block_by_lanes(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const std::size_t b = call.bytes, p = std::size_t(s.locals()), n = std::size_t(s.nodes());
  const Room ordered(s, places.blocks() ? 0 : n * p * b), partial(s, n * b), operands(s, n * b);
  const auto* send = static_cast<const std::byte*>(call.send);
  if (ordered.data()) {
    to_node_order(places, ordered.data(), send, b);
    send = ordered.data();
  }
  s.open_all();
  for (std::size_t node = 0; node < n; ++node)
    s.node_reduce_scatter_block(call, send + node * p * b, partial.data() + node * b, call.count);
  const PartsOfNodes parts = equal_parts(places, b, b);
  s.start(0, s.local(), {.move = Move::alltoall, .from = parts.in(partial.data()), .into = parts.in(operands.data())});
  s.wait(0);
  fold_nodes(call, operands.data(), n, call.count, call.recv);
}

}  // namespace nearfield::hierarchy
