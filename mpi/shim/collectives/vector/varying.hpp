// The collectives of blocks whose lengths differ: MPI_Gatherv, Scatterv and Allgatherv. In Gatherv and Scatterv only
// the root knows all lengths, and each other rank its own. So each block is a message between the two.
#pragma once
#include "mpi/shim/collectives/vector/exchange.hpp"

namespace nearfield::mpi {

// An edge to and from each rank. In place, this rank's block is sent from its position in the receive buffer.
struct Exchanged {
  PartnerData send, receive;
  int size, me;
  bool own_in_place;

  bool in_place() const { return false; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {size, size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    return in_rotated_order(me, size, own_in_place, [&](int to, int from) {
      return visitor.receive(from, 0, receive, from) &&
             (own_in_place ? visitor.send(to, 0, receive, me) : visitor.send(to, 0, send, to));
    });
  }
};

// The root gets a block of each member, or gives one to each; in place its own block stays where it is. In an
// intercommunicator the root has no block of its own, and the other ranks of its group are idle: they have no edges.
struct Rooted {
  PartnerData own, all;  // all: of the root
  int size, root;
  bool gathers, is_root = false, is_idle = false, has_own = false, own_in_place = false;

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
    const auto of_all = [&](int partner, int) {
      return gathers ? visitor.receive(partner, 0, all, partner) : visitor.send(partner, 0, all, partner);
    };
    return in_rotated_order(root, size, own_in_place, of_all) && (own_in_place || !has_own || one(root));
  }
};

template <Collective collective, class When, class N, class D>
int all_gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
                 const N* nr, const D* dr, MPI_Datatype tr, MPI_Comm) {
  const Communicator& c = *by.communicator;
  Exchanged operation{PartnerData::same(s, ns, ts), PartnerData::varying(r, nr, dr, tr), c.size, c.rank,
                      s == MPI_IN_PLACE};
  return exchange(collective, function, *by.communicator, when, operation, [&] {
    if (c.inter) return !operation.own_in_place && operation.receive.prepare();
    return operation.receive.prepare() &&
           (operation.own_in_place || !aliased(operation.send, 0, operation.receive, operation.me));
  });
}

// Fills in what follows from the root, as the program has given it. False: arguments that the host must judge.
bool prepare(Rooted& operation, const Communicator& c);

template <class When>
int rooted(Collective collective, bool gathers, const char* function, When when, Communicator& c,
           const PartnerData& own, const PartnerData& all, int root) {
  Rooted operation{own, all, c.size, root, gathers};
  return exchange(collective, function, c, when, operation, [&] { return prepare(operation, c); });
}

template <Collective collective, class When, class N, class D>
int gathered(const char* function, When when, const Admission& by, const void* s, N ns, MPI_Datatype ts, void* r,
             const N* nr, const D* dr, MPI_Datatype tr, int root, MPI_Comm) {
  return rooted(collective, true, function, when, *by.communicator, PartnerData::same(s, ns, ts),
                PartnerData::varying(r, nr, dr, tr), root);
}

template <Collective collective, class When, class N, class D>
int scattered(const char* function, When when, const Admission& by, const void* s, const N* ns, const D* ds,
              MPI_Datatype ts, void* r, N nr, MPI_Datatype tr, int root, MPI_Comm) {
  return rooted(collective, false, function, when, *by.communicator, PartnerData::same(r, nr, tr),
                PartnerData::varying(s, ns, ds, ts), root);
}

}  // namespace nearfield::mpi
