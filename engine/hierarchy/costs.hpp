// Estimates of algorithms over several nodes: nanoseconds until the slowest rank is through.
//
//   before      the work on each node, by the cheapest of its own algorithms (collectives/costs.hpp)
//   network     transfers by the host MPI, among one rank of each node (a lane), or in all lanes at once
//   after       the work on each node again
//
// A network phase costs what the usual algorithms of hosts do (Thakur, Rabenseifner and Gropp, Optimization of
// Collective Communication Operations in MPICH, 2005; Open MPI's and Intel's are of the same orders) by the figures of
// the network (machine.hpp). A pipeline works on chunks: while one is on the network, the nodes are at work on others.
#pragma once
#include <limits>

#include "engine/collectives/call.hpp"
#include "engine/hierarchy/shape.hpp"

namespace nearfield::hierarchy {

using collectives::Call;

// Estimate of a call that an algorithm cannot run.
inline constexpr double impossible = std::numeric_limits<double>::infinity();

// Each of `lanes` ranks on every node sends `messages` messages one right after the other, `bytes` in all.
double net_messages(const HierarchyShape& s, int lanes, double messages, double bytes);

// These operations run in each of `lanes` lanes at once. `bytes`: of one node's block in one lane.
double net_barrier(const HierarchyShape& s);
double net_bcast(const HierarchyShape& s, int lanes, double bytes);
double net_gather(const HierarchyShape& s, int lanes, double bytes);  // scatter as well
double net_allgather(const HierarchyShape& s, int lanes, double bytes);
double net_alltoall(const HierarchyShape& s, int lanes, double bytes);
// The lanes combine what they get: by gathering everything, or parts of it where that is cheaper.
double net_reduce(const HierarchyShape& s, int lanes, double bytes);
double net_allreduce(const HierarchyShape& s, int lanes, double bytes);
double net_reduce_scatter_block(const HierarchyShape& s, int lanes, double bytes);

struct Phases {
  double before = 0, network = 0, after = 0;
  double on_nodes() const { return before + after; }
  double all() const { return before + network + after; }
};
Phases leader_phases(const HierarchyShape& s, const Call& call);
Phases lanes_phases(const HierarchyShape& s, const Call& call);
// The phases of one of chunks(s, call) chunks: by lanes, or by leaders where nodes have unequal numbers of ranks.
Phases chunk_phases(const HierarchyShape& s, const Call& call);
// Returns the number of chunks for which a pipeline is estimated to take least. The estimate takes some microseconds.
int chunks(const HierarchyShape& s, const Call& call);

double leader_cost(const HierarchyShape& s, const Call& call);
double lanes_cost(const HierarchyShape& s, const Call& call);
double some_leaders_cost(const HierarchyShape& s, const Call& call, int leaders);  // alltoall
double pipelined_cost(const HierarchyShape& s, const Call& call);

}  // namespace nearfield::hierarchy
