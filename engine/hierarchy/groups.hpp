// The functions that rows point to, by file: bcast.cpp, reducing.cpp, gathering.cpp, exchanging.cpp,
// multi_leader_alltoall.cpp, in_order.cpp.
#pragma once
#include "engine/hierarchy/hierarchy.hpp"

namespace nearfield::hierarchy {

using Run = void(Hierarchy&, const Call&);
Run barrier_by_leaders, bcast_by_leaders, bcast_by_lanes, bcast_in_chunks;
Run reduce_by_leaders, reduce_by_lanes, reduce_in_chunks;  // Allreduce as well
Run allgather_by_leaders, allgather_by_lanes, gather_by_leaders, gather_by_lanes, scatter_by_leaders, scatter_by_lanes;
Run alltoall_by_leaders, alltoall_by_lanes, reduce_scatter_block_by_leaders, reduce_scatter_block_by_lanes;
Run alltoall_by_two, alltoall_by_four, alltoall_by_eight, alltoall_by_sixteen;
Run reduce_in_order, reduce_scatter_block_in_order;

// Copies the first rank's data to all ranks.
void bcast_from_first(Hierarchy& hierarchy, void* data, std::size_t bytes);

// Returns whether each lane gets a share: all nodes have the same number of ranks, and a vector that is divided among
// lanes is long enough. Operations of blocks send each block along one lane.
inline bool lanes_apply(const HierarchyShape& shape, const Call& call) {
  const auto p = std::size_t(shape.node.size);
  if (!shape.equal || p == 1) return false;
  switch (call.collective) {
    case Collective::bcast: return call.bytes >= p;
    case Collective::reduce:
    case Collective::allreduce: return call.count >= p;
    default: return true;
  }
}

}  // namespace nearfield::hierarchy
