// MPI_Alltoallv and MPI_Alltoallw: an edge to and from every rank, or every rank of the other group.
//
// On a communicator over several nodes, messages serve the pairs of ranks on one node. The host's non-blocking call
// serves all other pairs at the same time, with counts of 0 for ranks on this node. All ranks make that call, also
// those that are alone on their node. Calls in place and non-blocking or persistent calls are entirely the host's: in
// place, MPI_Ialltoallw of Open MPI (5.0.11) hangs with such counts.
#pragma once

#include "mpi/shim/collectives/vector/exchange.hpp"
#include "mpi/shim/communicators/host_transport.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

inline bool is_near(const Communicator& c, int rank) { return c.members[std::size_t(rank)] >= 0; }

struct AllPairs {
  PartnerData send, recv;
  const Communicator* c = nullptr;

  bool in_place() const { return send.in_place(); }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {c->size, c->size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    return in_rotated_order(c->rank, c->size, 0, [&](int to, int from) {
      return (!is_near(*c, from) || visitor.receive(from, 0, recv, from)) &&
             (!is_near(*c, to) || in_place() || visitor.send(to, 0, send, to));
    });
  }
  // False: arguments that the host must judge, such as equal buffers, which MPICH rejects. Valid calls must not go to
  // the host here, since the other ranks do not know of it.
  bool prepare() {
    if (c && c->inter) return !in_place() && recv.prepare() && send.prepare();
    return !(host_rejects_aliases && send.aliases(recv)) && recv.prepare() && (in_place() || send.prepare());
  }
};

// Starts the host's part of a call on a communicator over nodes, for ranks that are not near. `begin`: calls the host's
// non-blocking form with the given counts. Returns its error code.
template <class Count, class Begin>
int begin_beyond(hierarchy::Hierarchy& hierarchy, const Communicator* near, const Count* send, const Count* recv,
                 Begin begin) {
  auto& transport = static_cast<HostTransport&>(hierarchy.transport());
  Count *const given = transport.counts<Count>(), *const got = given + hierarchy.size();
  for (int r = 0; r < hierarchy.size(); ++r) {
    const bool ours = near && is_near(*near, r);
    given[r] = ours ? 0 : send[r];
    got[r] = ours ? 0 : recv[r];
  }
  const int code = transport.start(0, [&](MPI_Request* request) -> int { return begin(given, got, request); });
  if (code == MPI_SUCCESS) hierarchy.hold();
  return code;
}

// Serves a call on a communicator over nodes. `c`: the communicator; nullptr if messages reach no other rank. `begin`:
// begin_beyond() with the arguments of the call.
int all_pairs_over_nodes(Collective collective, const char* function, MPI_Comm comm, hierarchy::Hierarchy& hierarchy,
                         Communicator* c, AllPairs& operation, FunctionRef<int()> host_call, FunctionRef<int()> begin);

template <Collective collective, class When, class Count, class Place, class Types>
int all_pairs(const char* function, const When& when, const Admission& by, const void* s, const Count* ns,
              const Place* ds, Types ts, void* r, const Count* nr, const Place* dr, Types tr, MPI_Comm comm) {
  AllPairs operation{PartnerData::varying(s, ns, ds, ts), PartnerData::varying(r, nr, dr, tr)};
  if constexpr (!When::overlaps) {
    if (by.who == Server::nodes) {
      constexpr bool typed = collective == Collective::alltoallw, large = std::is_same_v<Count, MPI_Count>;
      constexpr Function begins = typed ? (large ? Function::Ialltoallw_c : Function::Ialltoallw)
                                        : (large ? Function::Ialltoallv_c : Function::Ialltoallv);
      if (operation.in_place() || !(host.*HostMember<begins>::at))
        return when.at_host(collective, Reason::communicator);
      hierarchy::Hierarchy& hierarchy = *by.communicator->hierarchy;
      Communicator* const c = channel(comm);
      return all_pairs_over_nodes(collective, function, comm, hierarchy, c, operation, when.host_call, [&]() -> int {
        return begin_beyond(hierarchy, c, ns, nr, [&](Count* given, Count* got, MPI_Request* request) {
          return at_host<begins>(s, given, ds, ts, r, got, dr, tr, comm, request);
        });
      });
    }
  }
  operation.c = by.communicator;
  return exchange(collective, function, *by.communicator, when, operation, [&] { return operation.prepare(); });
}

}  // namespace nearfield::mpi
