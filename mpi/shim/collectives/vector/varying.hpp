// The collectives of blocks whose lengths differ: MPI_Gatherv, Scatterv and Allgatherv. In Gatherv and Scatterv only
// the root knows all lengths, and each other rank its own. So each block is a message between the two.
#pragma once
#include "mpi/shim/collectives/vector/exchange.hpp"

namespace nearfield::mpi {

// An edge to and from each rank. In place, this rank's block is sent from its position in the receive buffer.
template <class Send, class Receive>
struct Exchanged {
  Send send;
  Receive receive;
  int size, me;
  bool own_in_place;

  bool in_place() const { return false; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {size, size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    for (int i = own_in_place; i < size; ++i) {
      const int to = (me + i) % size, from = (me % size - i + size) % size;
      if (!visitor.receive(from, 0, receive, from)) return false;
      if (!(own_in_place ? visitor.send(to, 0, receive, me) : visitor.send(to, 0, send, to))) return false;
    }
    return true;
  }
};

// The root gets a block of each member, or gives one to each; in place its own block stays where it is. In an
// intercommunicator the root has no block of its own, and the other ranks of its group are idle: they have no edges.
template <class Own, class All, bool gathers>
struct Rooted {
  Own own;
  All all;  // of the root
  int size, root;
  bool is_root, is_idle, has_own, own_in_place;

  bool in_place() const { return false; }
  bool one_way() const { return true; }
  std::pair<std::size_t, std::size_t> most() const {
    const std::size_t many = is_root ? std::size_t(size) : 0;
    return {gathers ? 1 : many, gathers ? many : 1};
  }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    auto one = [&](int partner) {
      return gathers ? visitor.send(partner, 0, own, 0) : visitor.receive(partner, 0, own, 0);
    };
    if (is_idle) return true;
    if (!is_root) return one(root);
    for (int i = own_in_place; i < size; ++i) {
      const int partner = (root + i) % size;
      if (!(gathers ? visitor.receive(partner, 0, all, partner) : visitor.send(partner, 0, all, partner))) return false;
    }
    return own_in_place || !has_own || one(root);
  }
};

template <Collective collective, class When, class N, class D>
int all_gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
                 const N* nr, const D* dr, MPI_Datatype tr, MPI_Comm) {
  using Operation = Exchanged<Same<N>, VaryingParts<N, D>>;
  return exchange<Operation>(
      collective, function, *by.communicator, when, [&](const Communicator& c, Operation& operation) {
        operation = {{const_cast<void*>(s), ns, ts}, parts(r, nr, dr, tr), c.size, c.rank, s == MPI_IN_PLACE};
        if (c.inter) return !operation.own_in_place && operation.receive.prepare();
        return operation.receive.prepare() &&
               (operation.own_in_place || !aliased(operation.send, 0, operation.receive, operation.me));
      });
}

template <class Operation>
bool make_rooted(Operation& operation, const Communicator& c, int root) {
  const bool in_place = operation.own.buffer == MPI_IN_PLACE, inter = c.inter;
  operation.size = c.size;
  operation.is_idle = inter && root == MPI_PROC_NULL;
  operation.is_root = inter ? root == MPI_ROOT : root == c.rank;
  operation.has_own = !inter;
  operation.own_in_place = !inter && in_place;
  operation.root = inter && operation.is_root ? 0 : root;
  if (operation.is_idle) return true;
  if (operation.root < 0 || operation.root >= c.size) return false;
  if (!operation.is_root) return !in_place;
  return operation.all.prepare() && (inter || in_place || !aliased(operation.own, 0, operation.all, root));
}

template <Collective collective, bool gathers, class When, class Own, class All>
int rooted(const char* function, When when, Communicator& c, Own own, All all, int root) {
  using Operation = Rooted<Own, All, gathers>;
  return exchange<Operation>(collective, function, c, when, [&](const Communicator&, Operation& operation) {
    operation.own = own;
    operation.all = all;
    return make_rooted(operation, c, root);
  });
}

template <Collective collective, class When, class N, class D>
int gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
             const N* nr, const D* dr, MPI_Datatype tr, int root, MPI_Comm) {
  return rooted<collective, true>(function, when, *by.communicator, Same<N>{const_cast<void*>(s), ns, ts},
                                  parts(r, nr, dr, tr), root);
}

template <Collective collective, class When, class N, class D>
int scattered(const char* function, When when, const Admission& by, const void* s, const N* ns, const D* ds,
              MPI_Datatype ts, void* r, N nr, MPI_Datatype tr, int root, MPI_Comm) {
  return rooted<collective, false>(function, when, *by.communicator, Same<N>{r, nr, tr}, parts(s, ns, ds, ts), root);
}

}  // namespace nearfield::mpi
