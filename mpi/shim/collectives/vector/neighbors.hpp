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

struct AmongNeighbors {
  const Neighborhood* neighbors;
  PartnerData send, receive;

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

// Fills in the neighbours. False: arguments that the host must judge.
bool prepare(AmongNeighbors& operation, Communicator& c);

template <class When>
int among_neighbors(Collective collective, const char* function, When when, const Admission& by,
                    const PartnerData& send, const PartnerData& receive) {
  AmongNeighbors operation{nullptr, send, receive};
  return exchange(collective, function, *by.communicator, when, operation,
                  [&] { return prepare(operation, *by.communicator); });
}

template <Collective collective, class When, class N>
int neighbors_block(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
                    N nr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, PartnerData::same(s, ns, ts), PartnerData::blocks(r, nr, tr));
}

template <Collective collective, class When, class N, class D>
int neighbors_gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts,
                       void* r, const N* nr, const D* dr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, PartnerData::same(s, ns, ts),
                         PartnerData::varying(r, nr, dr, tr));
}

template <Collective collective, class When, class N>
int neighbors_blocks(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts,
                     void* r, N nr, MPI_Datatype tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, PartnerData::blocks(s, ns, ts),
                         PartnerData::blocks(r, nr, tr));
}

// With one type for all neighbours, or one for each.
template <Collective collective, class When, class N, class D, class T>
int neighbors_varying(const char* function, When when, const Admission& by, const void* s, const N* ns, const D* ds,
                      T ts, void* r, const N* nr, const D* dr, T tr, MPI_Comm) {
  return among_neighbors(collective, function, when, by, PartnerData::varying(s, ns, ds, ts),
                         PartnerData::varying(r, nr, dr, tr));
}
template <Collective collective, class When, class N>
int neighbors_typed(const char* function, When when, const Admission& by, const void* s, const N* ns,
                    const MPI_Aint* ds, const MPI_Datatype* ts, void* r, const N* nr, const MPI_Aint* dr,
                    const MPI_Datatype* tr, MPI_Comm comm) {
  return neighbors_varying<collective>(function, when, by, s, ns, ds, ts, r, nr, dr, tr, comm);
}

}  // namespace nearfield::mpi
