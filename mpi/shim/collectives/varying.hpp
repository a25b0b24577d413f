// The collectives of blocks whose lengths differ: MPI_Gatherv, Scatterv and Allgatherv. Only the root knows all lengths
// of the rooted ones, and each member its own: as many messages as there are blocks, straight between the two.
#pragma once
#include "mpi/shim/collectives/exchange.hpp"

namespace nearfield::mpi {

// Everybody's block to everybody. In place one's own is where it will be sent from.
template <class Count, class Place>
struct AllGathered {
  Same<Count> own;
  Parts<Count, Place> all;
  int size, me;
  bool own_in_place;

  bool in_place() const { return false; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {size, size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    for (int i = own_in_place; i < size; ++i) {
      const int to = (me + i) % size, from = (me - i + size) % size;
      if (!visitor.receive(from, 0, all, from)) return false;
      if (!(own_in_place ? visitor.send(to, 0, all, me) : visitor.send(to, 0, own, 0))) return false;
    }
    return true;
  }
};

// The root gets a block of each member, or gives one to each; in place its own stays where it is.
template <class Count, class Place, bool gathers>
struct Rooted {
  Same<Count> own;
  Parts<Count, Place> all;  // of the root
  int size, me, root;
  bool own_in_place;

  bool in_place() const { return false; }
  bool one_way() const { return true; }
  std::pair<std::size_t, std::size_t> most() const {
    const std::size_t many = me == root ? std::size_t(size) : 0;
    return {gathers ? 1 : many, gathers ? many : 1};
  }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    auto one = [&](int partner) {
      return gathers ? visitor.send(partner, 0, own, 0) : visitor.receive(partner, 0, own, 0);
    };
    if (me != root) return one(root);
    for (int i = own_in_place; i < size; ++i) {
      const int partner = (root + i) % size;
      if (!(gathers ? visitor.receive(partner, 0, all, partner) : visitor.send(partner, 0, all, partner))) return false;
    }
    return own_in_place || one(root);
  }
};

template <Collective collective, class When, class N, class D>
int all_gathered(const char* function, When when, const void* s, N ns, MPI_Datatype ts, void* r, const N* nr,
                 const D* dr, MPI_Datatype tr, MPI_Comm comm) {
  using Operation = AllGathered<N, D>;
  return exchange<Operation>(collective, function, comm, when, [&](const Communicator& c, Operation& operation) {
    operation = {{const_cast<void*>(s), ns, ts}, parts(r, nr, dr, tr), c.size, c.rank, s == MPI_IN_PLACE};
    return operation.all.prepare() &&
           (operation.own_in_place || !aliased(operation.own, 0, operation.all, operation.me));
  });
}

template <class Operation, class N, class D>
bool make_rooted(Operation& operation, const Communicator& c, Same<N> own, Parts<N, D> all, int root) {
  if (root < 0 || root >= c.size) return false;
  const bool in_place = own.buffer == MPI_IN_PLACE;
  operation = {own, all, c.size, c.rank, root, in_place};
  if (c.rank != root) return !in_place;
  return operation.all.prepare() && (in_place || !aliased(own, 0, operation.all, root));
}

template <Collective collective, class When, class N, class D>
int gathered(const char* function, When when, const void* s, N ns, MPI_Datatype ts, void* r, const N* nr, const D* dr,
             MPI_Datatype tr, int root, MPI_Comm comm) {
  using Operation = Rooted<N, D, true>;
  return exchange<Operation>(collective, function, comm, when, [&](const Communicator& c, Operation& operation) {
    return make_rooted(operation, c, Same<N>{const_cast<void*>(s), ns, ts}, parts(r, nr, dr, tr), root);
  });
}

template <Collective collective, class When, class N, class D>
int scattered(const char* function, When when, const void* s, const N* ns, const D* ds, MPI_Datatype ts, void* r, N nr,
              MPI_Datatype tr, int root, MPI_Comm comm) {
  using Operation = Rooted<N, D, false>;
  return exchange<Operation>(collective, function, comm, when, [&](const Communicator& c, Operation& operation) {
    return make_rooted(operation, c, Same<N>{r, nr, tr}, parts(s, ns, ds, ts), root);
  });
}

}  // namespace nearfield::mpi
