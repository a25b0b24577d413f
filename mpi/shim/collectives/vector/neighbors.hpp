// Neighbourhood collectives on Cartesian, graph and distributed graph communicators, by messages between neighbours.
//
// Two ranks may be neighbours more than once. In graphs the n-th edge from one rank to another is the n-th edge that
// the other receives from it. On a Cartesian communicator the block sent in one direction is received from the opposite
// direction (MPI 4.1, 8.6). Both neighbours of a dimension may be the same rank, so each direction has a tag.
#pragma once
#include "mpi/shim/collectives/vector/exchange.hpp"

namespace nearfield::mpi {

// Returns the neighbours of this rank; nullptr: the communicator has no topology, and the host must judge the call.
const Neighborhood* neighborhood_of(Communicator& c);

template <class Send, class Receive>
struct AmongNeighbors {
  const Neighborhood* neighbors;
  Send send;
  Receive receive;

  bool in_place() const { return false; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {neighbors->targets.size(), neighbors->sources.size()}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    for (int k = 0; const auto& [rank, tag] : neighbors->sources)
      if (const int part = k++; rank >= 0 && !visitor.receive(rank, tag, receive, part)) return false;
    for (int k = 0; const auto& [rank, tag] : neighbors->targets)
      if (const int part = k++; rank >= 0 && !visitor.send(rank, tag, send, part)) return false;
    return true;
  }
};

template <class When, class Send, class Receive>
int among_neighbors(Collective collective, const char* function, When when, const Admission& by, Send send,
                    Receive receive) {
  using Operation = AmongNeighbors<Send, Receive>;
  return exchange<Operation>(collective, function, *by.communicator, when, [&](Communicator& c, Operation& operation) {
    const Neighborhood* const neighbors = neighborhood_of(c);
    if (!neighbors || send.buffer == MPI_IN_PLACE || receive.buffer == MPI_IN_PLACE) return false;
    operation = {neighbors, send, receive};
    // The arguments of a side without edges need not be valid.
    return (neighbors->targets.empty() || operation.send.prepare()) &&
           (neighbors->sources.empty() || operation.receive.prepare());
  });
}

template <Collective collective, class When, class N>
int neighbors_block(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
                    N nr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, Same<N>{const_cast<void*>(s), ns, ts}, Blocks<N>{r, nr, tr});
}

template <Collective collective, class When, class N, class D>
int neighbors_gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts,
                       void* r, const N* nr, const D* dr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, Same<N>{const_cast<void*>(s), ns, ts}, parts(r, nr, dr, tr));
}

template <Collective collective, class When, class N>
int neighbors_blocks(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts,
                     void* r, N nr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, Blocks<N>{const_cast<void*>(s), ns, ts}, Blocks<N>{r, nr, tr});
}

// With one type for all neighbours, or one for each.
template <Collective collective, class When, class N, class D, class T>
int neighbors_varying(const char* function, When when, const Admission& by, const void* s, const N* ns, const D* ds,
                      T ts, void* r, const N* nr, const D* dr, T tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, parts(s, ns, ds, ts), parts(r, nr, dr, tr));
}
template <Collective collective, class When, class N>
int neighbors_typed(const char* function, When when, const Admission& by, const void* s, const N* ns,
                    const MPI_Aint* ds, const MPI_Datatype* ts, void* r, const N* nr, const MPI_Aint* dr,
                    const MPI_Datatype* tr, MPI_Comm comm) {
  return neighbors_varying<collective>(function, when, by, s, ns, ds, ts, r, nr, dr, tr, comm);
}

}  // namespace nearfield::mpi
