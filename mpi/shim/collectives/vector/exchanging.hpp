// MPI_Alltoallv and MPI_Alltoallw: an edge to and from every rank, or every rank of the other group.
//
// On a communicator over several nodes, messages serve the pairs of ranks on one node. The host's non-blocking call
// serves all other pairs at the same time, with counts of 0 for ranks on this node. All ranks make that call, also
// those that are alone on their node. Calls in place and non-blocking or persistent calls are entirely the host's: in
// place, MPI_Ialltoallw of Open MPI (5.0.11) hangs with such counts.
#pragma once
#include <cstring>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/vector/exchange.hpp"
#include "mpi/shim/communicators/host_transport.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

inline bool is_near(const Communicator& c, int rank) { return c.members[std::size_t(rank)] >= 0; }

// The edges are in rotated order: in each step no two ranks send to the same rank.
template <class Count, class Place>
struct AllPairs {
  VaryingParts<Count, Place> send, recv;
  const Communicator* c = nullptr;

  bool in_place() const { return send.buffer == MPI_IN_PLACE; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {c->size, c->size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    const int p = c->size, me = c->rank;
    for (int i = 0; i < p; ++i) {
      const int to = (me + i) % p, from = (me % p - i + p) % p;
      if (is_near(*c, from) && !visitor.receive(from, 0, recv, from)) return false;
      if (is_near(*c, to) && !in_place() && !visitor.send(to, 0, send, to)) return false;
    }
    return true;
  }
  // False: arguments that the host must judge, such as equal buffers, which MPICH rejects. Valid calls must not go to
  // the host here, since the other ranks do not know of it.
  bool prepare() {
    if (c && c->inter) return !in_place() && recv.prepare() && send.prepare();
    const bool aliased = host_rejects_aliases && send.buffer && send.buffer == recv.buffer &&
                         send.counts == recv.counts && send.element == recv.element && send.types == recv.types;
    return !aliased && recv.prepare() && (in_place() || send.prepare());
  }
};

// Starts the host's part of a call on a communicator over nodes, for ranks that are not near. Returns its error code.
template <class P, class Begin>
int begin_beyond(hierarchy::Hierarchy& hierarchy, const Communicator* near, const P& send, const P& recv, Begin begin) {
  using Count = typename P::Counts;
  auto& transport = static_cast<HostTransport&>(hierarchy.transport());
  Count *const given = transport.counts<Count>(), *const got = given + hierarchy.size();
  for (int r = 0; r < hierarchy.size(); ++r) {
    const bool ours = near && is_near(*near, r);
    given[r] = ours ? 0 : send.counts[r];
    got[r] = ours ? 0 : recv.counts[r];
  }
  const int code = transport.start(0, [&](MPI_Request* request) -> int { return begin(given, got, request); });
  if (code == MPI_SUCCESS) hierarchy.hold();
  return code;
}

// Serves a call on a communicator over nodes. `c`: the communicator; nullptr if messages reach no other rank. `begin`:
// calls the host's non-blocking form with the given counts.
template <class Operation, class HostCall, class Begin>
int over_nodes(Collective collective, const char* function, MPI_Comm comm, hierarchy::Hierarchy& hierarchy,
               Communicator* c, Operation& operation, const HostCall& host_call, Begin begin) {
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  if (!operation.prepare()) return to_host(collective, Reason::argument, host_call);
  return guarded(comm, function, [&]() -> int {
    std::optional<Exchange> ready;
    bool lacking = false;
    operation.c = c;
    if (c) try {
        ready.emplace(*c, context_of_collectives(*c));
        if (!ready->describe(operation)) return to_host(collective, Reason::argument, host_call);
      } catch (const OutOfMemory&) {
        refuse(*c, context_of_collectives(*c), operation);
        lacking = true;
      }
    if (const int code = begin_beyond(hierarchy, c, operation.send, operation.recv, begin); code != MPI_SUCCESS) {
      if (c && !lacking) refuse(*c, context_of_collectives(*c), operation);
      return code;
    }
    const int code = c && !lacking ? ready->run() : MPI_SUCCESS;
    hierarchy.wait(0);
    if (lacking) throw OutOfMemory();
    if (open_windows.load(std::memory_order_relaxed)) hierarchy.home().progress().step_host();
    count_exchange(collective, c ? ready->bytes() : 0, start);
    return report(comm, code);
  });
}

template <Collective collective, class When, class Count, class Place, class Types>
int all_pairs(const char* function, const When& when, const Admission& by, const void* s, const Count* ns,
              const Place* ds, Types ts, void* r, const Count* nr, const Place* dr, Types tr, MPI_Comm comm) {
  using Operation = AllPairs<Count, Place>;
  Operation operation{parts(s, ns, ds, ts), parts(r, nr, dr, tr)};
  if constexpr (!When::overlaps) {
    if (by.who == Server::nodes) {
      constexpr bool typed = collective == Collective::alltoallw, large = std::is_same_v<Count, MPI_Count>;
      constexpr Function begins = typed ? (large ? Function::Ialltoallw_c : Function::Ialltoallw)
                                        : (large ? Function::Ialltoallv_c : Function::Ialltoallv);
      if (operation.in_place() || !(host.*HostMember<begins>::at))
        return when.at_host(collective, Reason::communicator);
      return over_nodes(collective, function, comm, *by.communicator->hierarchy, channel(comm), operation,
                        when.host_call, [&](Count* given, Count* got, MPI_Request* request) {
                          return at_host<begins>(s, given, ds, ts, r, got, dr, tr, comm, request);
                        });
    }
  }
  return exchange<Operation>(collective, function, *by.communicator, when,
                             [&](const Communicator& near, Operation& made) {
                               made = operation;
                               made.c = &near;
                               return made.prepare();
                             });
}

}  // namespace nearfield::mpi
