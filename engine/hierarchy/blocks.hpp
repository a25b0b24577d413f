// Orders of blocks. In *rank order* block r is rank r's; in *node order* the blocks of a node's ranks follow each
// other, node by node. Both orders are the same where each node has consecutive ranks.
#pragma once
#include <cstring>

#include "engine/hierarchy/hierarchy.hpp"

namespace nearfield::hierarchy {

// Calls move(position, rank, blocks) for each run of a node's blocks that follow each other in both orders. `position`:
// of the first one in node order.
template <class MoveBlocks>
void in_node_order(const Placement& placement, int node, MoveBlocks move) {
  for (int local = 0; local < placement.ranks_on(node);) {
    const int first = placement.rank(node, local), position = placement.before(node) + local;
    int blocks = 1;
    while (local + blocks < placement.ranks_on(node) && placement.rank(node, local + blocks) == first + blocks)
      ++blocks;
    move(std::size_t(position), std::size_t(first), std::size_t(blocks));
    local += blocks;
  }
}

inline void to_node_order(const Placement& placement, std::byte* into, const std::byte* from, std::size_t bytes) {
  for (int node = 0; node < placement.nodes(); ++node)
    in_node_order(placement, node, [&](std::size_t position, std::size_t rank, std::size_t blocks) {
      std::memcpy(into + position * bytes, from + rank * bytes, blocks * bytes);
    });
}
inline void to_rank_order(const Placement& placement, std::byte* into, const std::byte* from, std::size_t bytes) {
  for (int node = 0; node < placement.nodes(); ++node)
    in_node_order(placement, node, [&](std::size_t position, std::size_t rank, std::size_t blocks) {
      std::memcpy(into + rank * bytes, from + position * bytes, blocks * bytes);
    });
}
// pre: all nodes have the same number of ranks. In the order of lanes the blocks of all nodes' first locals come first,
// then those of their second locals.
inline void lanes_to_rank_order(const Placement& placement, std::byte* into, const std::byte* from, std::size_t bytes) {
  for (int local = 0; local < placement.most(); ++local)
    for (int node = 0; node < placement.nodes(); ++node, from += bytes)
      std::memcpy(into + std::size_t(placement.rank(node, local)) * bytes, from, bytes);
}
inline void rank_order_to_lanes(const Placement& placement, std::byte* into, const std::byte* from, std::size_t bytes) {
  for (int local = 0; local < placement.most(); ++local)
    for (int node = 0; node < placement.nodes(); ++node, into += bytes)
      std::memcpy(into, from + std::size_t(placement.rank(node, local)) * bytes, bytes);
}

// Lengths and places of a part for each node.
struct PartsOfNodes {
  std::vector<std::size_t> bytes, at;
  MemberParts in(std::byte* buffer) const { return {buffer, bytes, at}; }
};
// Each node's part holds its ranks' blocks of `each` bytes, in node order.
inline PartsOfNodes by_ranks(const Placement& placement, std::size_t each) {
  PartsOfNodes parts;
  for (int node = 0; node < placement.nodes(); ++node) {
    parts.bytes.push_back(std::size_t(placement.ranks_on(node)) * each);
    parts.at.push_back(std::size_t(placement.before(node)) * each);
  }
  return parts;
}
// Each node's part has `bytes` bytes; it begins `apart` bytes behind the beginning of the one before.
inline PartsOfNodes equal_parts(const Placement& placement, std::size_t bytes, std::size_t apart) {
  PartsOfNodes parts;
  parts.bytes.assign(std::size_t(placement.nodes()), bytes);
  for (int node = 0; node < placement.nodes(); ++node) parts.at.push_back(std::size_t(node) * apart);
  return parts;
}

}  // namespace nearfield::hierarchy
