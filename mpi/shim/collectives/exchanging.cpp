// MPI_Alltoallv and MPI_Alltoallw: an edge to and from everybody.
//
// On a communicator over several nodes the host's non-blocking call goes on meanwhile, in which whoever is near has
// counts of nothing. All of its ranks make that call, those without neighbours as well. In place the host's own
// blocking call serves all: MPI_Ialltoallw of Open MPI (5.0.11) hangs with such counts. So it does for those that
// overlap others.
#include <cstring>

#include "mpi/shim/collectives/alone.hpp"
#include "mpi/shim/collectives/exchange.hpp"
#include "mpi/shim/communicators/host_carrier.hpp"
#include "mpi/shim/narrowing.hpp"

namespace nearfield::mpi {
namespace {

bool is_near(const Communicator& c, int rank) { return c.members[std::size_t(rank)] >= 0; }

// In rotated order, in which everybody has a partner of its own at each step.
template <class Count, class Place>
struct AllPairs {
  Parts<Count, Place> send, recv;
  const Communicator* c = nullptr;

  bool in_place() const { return send.buffer == MPI_IN_PLACE; }
  bool one_way() const { return false; }
  std::pair<std::size_t, std::size_t> most() const { return {c->size, c->size}; }
  template <class Visitor>
  bool edges(Visitor& visitor) const {
    const int p = c->size, me = c->rank;
    for (int i = 0; i < p; ++i) {
      const int to = (me + i) % p, from = (me - i + p) % p;
      if (is_near(*c, from) && !visitor.receive(from, 0, recv, from)) return false;
      if (is_near(*c, to) && !in_place() && !visitor.send(to, 0, send, to)) return false;
    }
    return true;
  }
  // False: arguments that the host must judge, or, of aliased buffers, that MPICH rejects. Nothing more may go to the
  // host for that reason, since the other ranks do not know of it.
  bool prepare() {
    const bool aliased = host_rejects_aliases && send.buffer && send.buffer == recv.buffer &&
                         send.counts == recv.counts && send.element == recv.element && send.types == recv.types;
    return !aliased && recv.prepare() && (in_place() || send.prepare());
  }
};

// The host's part of a call on a communicator over nodes: what ranks have for each other that are not near. Its code.
template <class P, class Begin>
int begin_beyond(spread::Spread& spread, const Communicator* near, const P& send, const P& recv, Begin begin) {
  using Count = typename P::Counts;
  auto& carrier = static_cast<HostCarrier&>(spread.carrier());
  Count *const given = carrier.counts<Count>(), *const got = given + spread.size();
  for (int r = 0; r < spread.size(); ++r) {
    const bool ours = near && is_near(*near, r);
    given[r] = ours ? 0 : send.counts[r];
    got[r] = ours ? 0 : recv.counts[r];
  }
  const int code = carrier.start(0, [&](MPI_Request* request) -> int { return begin(given, got, request); });
  if (code == MPI_SUCCESS) spread.hold();
  return code;
}

// On a communicator over nodes. `c`: whom messages of ours reach; nullptr: nobody. `begin`: the host's non-blocking
// form, by counts of ours.
template <class Operation, class HostCall, class Begin>
int over_nodes(Collective collective, const char* function, MPI_Comm comm, spread::Spread& spread, Communicator* c,
               Operation& operation, const HostCall& host_call, Begin begin) {
  const std::uint64_t start = stats_on ? waiting::nanoseconds() : 0;
  if (!operation.prepare()) return to_host(collective, Reason::argument, host_call);
  return guarded(comm, function, [&]() -> int {
    std::optional<Exchange> ready;
    bool lacking = false;
    operation.c = c;
    if (c) try {
        ready.emplace(*c, false);
        if (!ready->describe(operation)) return to_host(collective, Reason::argument, host_call);
      } catch (const std::bad_alloc&) {
        refuse(*c, false, operation);
        lacking = true;
      }
    if (const int code = begin_beyond(spread, c, operation.send, operation.recv, begin); code != MPI_SUCCESS) {
      if (c && !lacking) refuse(*c, false, operation);
      return code;
    }
    const int code = c && !lacking ? ready->run() : MPI_SUCCESS;
    spread.wait(0);
    if (lacking) throw std::bad_alloc();
    if (open_windows.load(std::memory_order_relaxed)) spread.home().progress.step_host();
    count_exchange(collective, c ? ready->bytes() : 0, start);
    return report(comm, code);
  });
}

// The same for the non-blocking form, by `given` and `got`, two counts of each rank, in whose memory the ints lie then.
template <class Types>
int begin_without_large(const char* function, const void* s, MPI_Count* given, const MPI_Aint* ds, Types ts, void* r,
                        MPI_Count* got, const MPI_Aint* dr, Types tr, MPI_Comm c, MPI_Request* request) {
  const auto p = std::size_t(got - given);
  int* const ints = reinterpret_cast<int*>(given);
  bool fits = true;
  auto put = [&](std::size_t at, const auto* values) {  // behind what is still to be read
    for (std::size_t i = 0; i < p; ++i) {
      std::remove_cvref_t<decltype(*values)> value;
      std::memcpy(&value, values + i, sizeof value);
      const int one = narrow(MPI_Count(value), fits);
      std::memcpy(ints + at + i, &one, sizeof one);
    }
  };
  put(0, given);
  put(p, got);
  put(2 * p, ds);
  put(3 * p, dr);
  if (!fits) return raise(c, function, too_large);
  if constexpr (std::is_same_v<Types, MPI_Datatype>)
    return host.Ialltoallv(s, ints, ints + 2 * p, ts, r, ints + p, ints + 3 * p, tr, c, request);
  else return host.Ialltoallw(s, ints, ints + 2 * p, ts, r, ints + p, ints + 3 * p, tr, c, request);
}

// Of a communicator of one rank; none: the host must judge the arguments.
template <class Operation>
alone::Outcome exchange_alone(Collective collective, const char* function, Operation operation, MPI_Comm comm) {
  const auto only = [](const auto& parts) { return alone::Side{parts.address(0), parts.counts[0], parts.type(0)}; };
  if (operation.recv.buffer == MPI_IN_PLACE || !operation.recv.prepare()) return std::nullopt;
  if (operation.in_place()) return alone::keep(collective, only(operation.recv));
  if (!operation.send.prepare()) return std::nullopt;
  return alone::copy(collective, function, only(operation.send), only(operation.recv), comm);
}

// By the host's blocking and non-blocking forms; large-count ones a host may lack.
template <class Call, class Begin, class Plain, class Count, class Place, class Types>
int exchange_by(const char* function, Call call, Begin begin, Plain plain, const void* s, const Count* ns,
                const Place* ds, Types ts, void* r, const Count* nr, const Place* dr, Types tr, MPI_Comm comm) {
  using Operation = AllPairs<Count, Place>;
  constexpr Collective collective = std::is_same_v<Types, MPI_Datatype> ? Collective::alltoallv : Collective::alltoallw;
  constexpr bool large = std::is_same_v<Count, MPI_Count>;
  Operation operation{parts(s, ns, ds, ts), parts(r, nr, dr, tr)};
  const Now at_host{[&]() -> int {
    if constexpr (large)
      if (!call) {
        const std::size_t p = partners_in(comm);
        const Lengths lengths{operation.in_place() ? 0 : p, p, 2};
        return narrowed(
            plain, lengths, [&] { return raise(comm, function, too_large); }, s, ns, ds, ts, r, nr, dr, tr, comm);
      }
    return call(s, ns, ds, ts, r, nr, dr, tr, comm);
  }};
  if (find_alone(comm))
    return alone::or_host(collective, at_host.host_call, exchange_alone(collective, function, operation, comm));
  Communicator* c = channel(comm);
  if ((!c || spans_nodes(*c)) && !operation.in_place()) {
    const Admission admission = admit(comm);
    if (admission.communicator && admission.communicator->spread)
      return over_nodes(collective, function, comm, *admission.communicator->spread, c, operation, at_host.host_call,
                        [&](Count* given, Count* got, MPI_Request* request) {
                          if constexpr (large)
                            if (!begin)
                              return begin_without_large(function, s, given, ds, ts, r, got, dr, tr, comm, request);
                          return begin(s, given, ds, ts, r, got, dr, tr, comm, request);
                        });
  }
  return exchange<Operation>(collective, function, comm, at_host, [&](const Communicator& near, Operation& made) {
    made = operation;
    made.c = &near;
    return made.prepare();
  });
}

template <class Begin, class Count, class Place, class Types>
int overlap_by(const char* function, Begin begin, const void* s, const Count* ns, const Place* ds, Types ts, void* r,
               const Count* nr, const Place* dr, Types tr, MPI_Comm comm, MPI_Request* request) {
  using Operation = AllPairs<Count, Place>;
  const Later at_host{[&]() -> int {
                        // Narrowed counts would have to live as long as the request.
                        if (!begin) return raise(comm, function, "this MPI library does not have it");
                        return begin(s, ns, ds, ts, r, nr, dr, tr, comm, request);
                      },
                      request};
  constexpr Collective collective = std::is_same_v<Types, MPI_Datatype> ? Collective::alltoallv : Collective::alltoallw;
  if (request && find_alone(comm)) {
    const auto outcome =
        exchange_alone(collective, function, Operation{parts(s, ns, ds, ts), parts(r, nr, dr, tr)}, comm);
    return outcome ? alone::completed(*outcome, request) : at_host.at_host(collective, Reason::argument);
  }
  return exchange<Operation>(collective, function, comm, at_host, [&](const Communicator& c, Operation& operation) {
    operation = {parts(s, ns, ds, ts), parts(r, nr, dr, tr), &c};
    return operation.prepare();
  });
}

}  // namespace

int Alltoallv(const void* s, const int* ns, const int* ds, MPI_Datatype ts, void* r, const int* nr, const int* dr,
              MPI_Datatype tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallv", host.Alltoallv, host.Ialltoallv, host.Alltoallv, s, ns, ds, ts, r, nr, dr, tr, c);
}
int Ialltoallv(const void* s, const int* ns, const int* ds, MPI_Datatype ts, void* r, const int* nr, const int* dr,
               MPI_Datatype tr, MPI_Comm c, MPI_Request* q) {
  return overlap_by("MPI_Ialltoallv", host.Ialltoallv, s, ns, ds, ts, r, nr, dr, tr, c, q);
}
int Alltoallv_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, MPI_Datatype ts, void* r, const MPI_Count* nr,
                const MPI_Aint* dr, MPI_Datatype tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallv_c", host.Alltoallv_c, host.Ialltoallv_c, host.Alltoallv, s, ns, ds, ts, r, nr, dr,
                     tr, c);
}
int Ialltoallv_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, MPI_Datatype ts, void* r, const MPI_Count* nr,
                 const MPI_Aint* dr, MPI_Datatype tr, MPI_Comm c, MPI_Request* q) {
  return overlap_by("MPI_Ialltoallv_c", host.Ialltoallv_c, s, ns, ds, ts, r, nr, dr, tr, c, q);
}
int Alltoallw(const void* s, const int* ns, const int* ds, const MPI_Datatype* ts, void* r, const int* nr,
              const int* dr, const MPI_Datatype* tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallw", host.Alltoallw, host.Ialltoallw, host.Alltoallw, s, ns, ds, ts, r, nr, dr, tr, c);
}
int Ialltoallw(const void* s, const int* ns, const int* ds, const MPI_Datatype* ts, void* r, const int* nr,
               const int* dr, const MPI_Datatype* tr, MPI_Comm c, MPI_Request* q) {
  return overlap_by("MPI_Ialltoallw", host.Ialltoallw, s, ns, ds, ts, r, nr, dr, tr, c, q);
}
int Alltoallw_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, const MPI_Datatype* ts, void* r,
                const MPI_Count* nr, const MPI_Aint* dr, const MPI_Datatype* tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallw_c", host.Alltoallw_c, host.Ialltoallw_c, host.Alltoallw, s, ns, ds, ts, r, nr, dr,
                     tr, c);
}
int Ialltoallw_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, const MPI_Datatype* ts, void* r,
                 const MPI_Count* nr, const MPI_Aint* dr, const MPI_Datatype* tr, MPI_Comm c, MPI_Request* q) {
  return overlap_by("MPI_Ialltoallw_c", host.Ialltoallw_c, s, ns, ds, ts, r, nr, dr, tr, c, q);
}

}  // namespace nearfield::mpi
