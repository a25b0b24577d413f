#include "mpi/shim/collectives/vector/neighbors.hpp"

namespace nearfield::mpi {
namespace {

using Edge = Neighborhood::Edge;

Edge edge(int rank, int tag = 0) { return {rank == MPI_PROC_NULL ? -1 : rank, tag}; }

bool find_cartesian(MPI_Comm comm, Neighborhood& found) {
  int dimensions = 0;
  if (host.Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return false;
  for (int d = 0; d < dimensions; ++d) {
    int before = MPI_PROC_NULL, behind = MPI_PROC_NULL;
    if (host.Cart_shift(comm, d, 1, &before, &behind) != MPI_SUCCESS) return false;
    const int down = 2 * d, up = 2 * d + 1;
    found.targets.insert(found.targets.end(), {edge(before, down), edge(behind, up)});
    found.sources.insert(found.sources.end(), {edge(before, up), edge(behind, down)});
  }
  return true;
}

bool find_graph(MPI_Comm comm, int rank, Neighborhood& found) {
  int n = 0;
  if (host.Graph_neighbors_count(comm, rank, &n) != MPI_SUCCESS) return false;
  std::vector<int> ranks(std::size_t(n) + 1);
  if (host.Graph_neighbors(comm, rank, n, ranks.data()) != MPI_SUCCESS) return false;
  for (int k = 0; k < n; ++k) found.sources.push_back(edge(ranks[std::size_t(k)]));
  found.targets = found.sources;
  return true;
}

bool find_distributed(MPI_Comm comm, Neighborhood& found) {
  int in = 0, out = 0, weighted = 0;
  if (host.Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) return false;
  // One more, since a host may not like arrays of no length.
  std::vector<int> sources(std::size_t(in) + 1), targets(std::size_t(out) + 1), weights;
  int *from_weights = host.unweighted, *to_weights = host.unweighted;
  if (weighted || !host.unweighted) {
    weights.resize(std::size_t(in) + std::size_t(out) + 2);
    from_weights = weights.data();
    to_weights = weights.data() + in + 1;
  }
  if (host.Dist_graph_neighbors(comm, in, sources.data(), from_weights, out, targets.data(), to_weights) != MPI_SUCCESS)
    return false;
  for (int k = 0; k < in; ++k) found.sources.push_back(edge(sources[std::size_t(k)]));
  for (int k = 0; k < out; ++k) found.targets.push_back(edge(targets[std::size_t(k)]));
  return true;
}

}  // namespace

const Neighborhood* neighborhood_of(Communicator& c) {
  if (c.neighborhood) [[likely]]
    return c.neighborhood.get();
  int kind = MPI_UNDEFINED;
  auto found = std::make_unique<Neighborhood>();
  if (host.Topo_test(c.comm, &kind) != MPI_SUCCESS) return nullptr;
  bool good = false;
  if (kind == MPI_CART) good = find_cartesian(c.comm, *found);
  else if (kind == MPI_GRAPH) good = find_graph(c.comm, c.rank, *found);
  else if (kind == MPI_DIST_GRAPH) good = find_distributed(c.comm, *found);
  if (good) c.neighborhood = std::move(found);
  return c.neighborhood.get();
}

bool prepare(AmongNeighbors& operation, Communicator& c) {
  operation.neighbors = neighborhood_of(c);
  if (!operation.neighbors || operation.send.in_place() || operation.receive.in_place()) return false;
  // Arguments for which there are no edges need not be valid.
  return (operation.neighbors->targets.empty() || operation.send.prepare()) &&
         (operation.neighbors->sources.empty() || operation.receive.prepare());
}

}  // namespace nearfield::mpi
