// All-to-all of lengths and types that differ by pair: MPI_Alltoallv and MPI_Alltoallw, as messages between all pairs
// (engine/messages/pairwise.hpp). Here: the arguments of a call, types, packing, devices, errors.
//
// On a communicator over several nodes the host's non-blocking call goes on meanwhile, in which whoever is near has
// counts of nothing. All of its ranks make that call, those without neighbours as well. In place the host's own
// blocking call serves all: MPI_Ialltoallw of Open MPI (5.0.11) hangs with such counts.
//
// Who takes part in messages is equal on all ranks (law 1 of docs/architecture.md); arguments that are wrong go to the
// host, which raises the error. A rank that cannot take part tells the others by sending nothing (law 7).
#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/messages/pairwise.hpp"
#include "mpi/shim/collectives/alone.hpp"
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/communicators/host_carrier.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {
namespace {

using collectives::Collective;

// One side of the exchange: for each partner so many elements of a type, displaced from the buffer.
template <class Count, class Displacement>
struct Parts {
  using Counts = Count;
  void* buffer;
  const Count* counts;
  const Displacement* displacements;
  MPI_Datatype type;          // of all of them ...
  const MPI_Datatype* types;  // ... or of each, then displacements are bytes
  MPI_Aint extent = 1;        // of `type`

  bool complete() const { return counts && displacements; }
  bool empty(int partners) const {
    return std::all_of(counts, counts + partners, [](Count count) { return count == 0; });
  }
  // False: arguments that the host must judge.
  bool prepare() {
    if (!complete()) return false;
    if (types) return true;
    if (const TypeInfo* info = find_type(type); info && info->dense) {
      extent = info->bytes;
      return true;
    }
    if (const auto layout = find_layout(type); layout && layout->described) {
      extent = layout->view.dense() ? MPI_Aint(layout->size) : MPI_Aint(layout->view.extent);
      return true;
    }
    MPI_Aint low = 0;
    return type != host.type_null && host.Type_get_extent(type, &low, &extent) == MPI_SUCCESS;
  }
  MPI_Datatype type_of(int partner) const { return types ? types[partner] : type; }
  void* address_of(int partner) const {
    return static_cast<std::byte*>(buffer) + MPI_Aint(displacements[partner]) * (types ? 1 : extent);
  }
};

// What goes to or comes from one partner. Data of types that are not described is packed.
struct Part {
  std::shared_ptr<const TypeLayout> layout;
  std::unique_ptr<Packed> packed;
  std::unique_ptr<devices::Stage> stage;
  std::size_t count = 0;

  // False: arguments that the host must judge.
  template <class P>
  bool describe(const P& parts, int partner, bool sends, MPI_Comm comm, layout::Data& data) {
    if (parts.counts[partner] < 0) return false;
    count = std::size_t(parts.counts[partner]);
    if (count == 0) return true;
    TypedData typed(parts.address_of(partner), parts.counts[partner], parts.type_of(partner));
    if (!typed.good) return false;
    data = typed.data;
    layout = std::move(typed.layout);
    if (!layout || layout->described) {
      stage = devices::stage(data, sends);
      return true;
    }
    packed = std::make_unique<Packed>(parts.address_of(partner), parts.counts[partner], parts.type_of(partner), comm);
    data = packed->data();
    return !sends || packed->pack_all() == MPI_SUCCESS;
  }
  // What a buffer that is sent from in place holds.
  bool fetch() const {
    if (packed && packed->pack(0, count) != MPI_SUCCESS) return false;
    return !stage || stage->fetch();
  }
  // What has come, to where the program looks for it.
  int store(std::size_t bytes) const {
    if (packed) return packed->unpack(0, count);
    return stage && !stage->store(bytes) ? MPI_ERR_BUFFER : MPI_SUCCESS;
  }
};

bool is_near(const Communicator& c, int rank) { return c.members[std::size_t(rank)] >= 0; }

messages::Partners partners_of(const Communicator& c) {
  return {*the_messenger, c.members, c.rank, context_of_collectives(c)};
}

// Our part of a call: the arguments as the engine takes them, for as long as it needs them.
class Exchange {
 public:
  explicit Exchange(const Communicator& c) : c_(c), pairwise_(partners_of(c)), parts_(2 * std::size_t(c.size)) {}

  // False: arguments that the host must judge.
  template <class P>
  bool describe(const P& send, const P& recv, bool in_place) {
    for (int r = 0; r < partners(); ++r)
      if (is_near(c_, r) && (!received(r).describe(recv, r, false, c_.comm, pairwise_.from(r)) ||
                             !(in_place || sent(r).describe(send, r, true, c_.comm, pairwise_.to(r)))))
        return false;
    return true;
  }
  void copy_aside() {
    for (int r = 0; r < partners(); ++r)
      if (!received(r).fetch()) throw std::bad_alloc();
    pairwise_.copy_aside();
  }
  void prepare() { pairwise_.prepare(); }

  // A code that is yet to be raised.
  int run() {
    int code = trouble_code(pairwise_.run());
    for (int r = 0; r < partners() && code == MPI_SUCCESS; ++r) code = received(r).store(pairwise_.from(r).bytes);
    return code;
  }
  std::uint64_t bytes() { return pairwise_.bytes_to_all(); }

 private:
  int partners() const { return int(parts_.size() / 2); }
  Part& sent(int partner) { return parts_[2 * std::size_t(partner)]; }
  Part& received(int partner) { return parts_[2 * std::size_t(partner) + 1]; }
  const Communicator& c_;
  messages::Pairwise pairwise_;
  std::vector<Part> parts_;
};

// Without memory we cannot take part.
template <class P>
void refuse(const Communicator& c, const P& send, const P& recv, bool in_place) {
  auto any = [&](const P& parts, int partner) {
    MPI_Count size = 0;
    return is_near(c, partner) && parts.counts[partner] > 0 &&
           host.Type_size_x(parts.type_of(partner), &size) == MPI_SUCCESS && size > 0;
  };
  messages::refuse(
      partners_of(c), [&](int to) { return any(in_place ? recv : send, to); },
      [&](int from) { return any(recv, from); });
}

// What MPICH rejects. Nothing more may go to the host for such a reason, since the other ranks do not know of it.
template <class P>
bool aliased(const P& send, const P& recv) {
  return host_rejects_aliases && send.buffer && send.buffer == recv.buffer && send.counts == recv.counts &&
         send.type == recv.type && send.types == recv.types;
}

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

// `begin`: the host's non-blocking form, by counts of ours.
template <class P, class HostCall, class Begin>
int exchange(const char* function, P send, P recv, MPI_Comm comm, HostCall host_call, Begin begin) {
  const Collective collective = recv.types ? Collective::alltoallw : Collective::alltoallv;
  const std::uint64_t start = stats_on ? waiting::nanoseconds() : 0;
  auto count = [&](std::uint64_t bytes) {
    Tally& t = tally(collective);
    t.calls.fetch_add(1, std::memory_order_relaxed);
    t.bytes.fetch_add(bytes, std::memory_order_relaxed);
    t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
  };
  const bool in_place = send.buffer == MPI_IN_PLACE;
  if (find_alone(comm)) {
    const bool good = recv.buffer != MPI_IN_PLACE && recv.prepare() && (in_place || send.prepare());
    const auto only = [](const P& parts) -> alone::Side {
      return {parts.address_of(0), parts.counts[0], parts.type_of(0)};
    };
    return alone::or_host(collective, host_call,
                          !good      ? std::nullopt
                          : in_place ? alone::keep(collective, only(recv))
                                     : alone::copy(collective, function, only(send), only(recv), comm));
  }
  Communicator* c = channel(comm);
  spread::Spread* spread = nullptr;
  if (!c || spans_nodes(*c)) {
    const Admission admission = admit(comm);
    if (admission.communicator && !in_place) spread = admission.communicator->spread.get();
    if (!spread) c = nullptr;
  }
  if (!spread && (!c || c->inter)) {
    const Communicator* const state = the_messenger ? communicator_of(comm) : nullptr;
    return to_host(collective, state && !state->messages_on ? Reason::off : Reason::communicator, host_call);
  }
  if (aliased(send, recv) || !recv.prepare() || !(in_place || send.prepare()))
    return to_host(collective, Reason::argument, host_call);
  if (!spread && recv.empty(c->size) && (in_place || send.empty(c->size))) {
    last_algorithm = "messages";
    if (stats_on) [[unlikely]]
      count(0);
    return MPI_SUCCESS;
  }
  return guarded(comm, function, [&]() -> int {
    std::optional<Exchange> ready;
    bool lacking = false;
    if (c) try {
        ready.emplace(*c);
        if (!ready->describe(send, recv, in_place)) return to_host(collective, Reason::argument, host_call);
        if (in_place) ready->copy_aside();
        ready->prepare();
      } catch (const std::bad_alloc&) {
        refuse(*c, send, recv, in_place);
        lacking = true;
      }
    if (spread)
      if (const int code = begin_beyond(*spread, c, send, recv, begin); code != MPI_SUCCESS) {
        if (c && !lacking) refuse(*c, send, recv, in_place);
        return code;
      }
    const int code = c && !lacking ? ready->run() : MPI_SUCCESS;
    if (spread) spread->wait(0);
    if (lacking) throw std::bad_alloc();
    if (open_windows.load(std::memory_order_relaxed))
      (spread ? spread->home() : the_messenger->node()).progress.step_host();
    last_algorithm = "messages";
    if (stats_on) [[unlikely]]
      count(c ? ready->bytes() : 0);
    return report(comm, code);
  });
}

constexpr const char* too_large =
    "this MPI library has no large-count form, and a count or displacement exceeds an int";

// The large-count form of a host that has none: by its int form, as long as everything fits.
template <class Types>
int without_large(const char* function, const void* s, const MPI_Count* ns, const MPI_Aint* ds, Types ts, void* r,
                  const MPI_Count* nr, const MPI_Aint* dr, Types tr, MPI_Comm c) {
  int p = 0, inter = 0;
  bool fits = true;
  if (const int code = host.Comm_test_inter(c, &inter); code != MPI_SUCCESS) return code;
  if (const int code = inter ? host.Comm_remote_size(c, &p) : host.Comm_size(c, &p); code != MPI_SUCCESS) return code;
  auto narrowed = [&](const auto* values) {
    std::vector<int> result;
    for (int i = 0; values && i < p; ++i) result.push_back(narrow(MPI_Count(values[i]), fits));
    return result;
  };
  const bool in_place = s == MPI_IN_PLACE;
  const auto counts = narrowed(in_place ? nullptr : ns), sent_from = narrowed(in_place ? nullptr : ds);
  const auto wanted = narrowed(nr), received_at = narrowed(dr);
  if (!fits) return raise(c, function, too_large);
  if constexpr (std::is_same_v<Types, MPI_Datatype>)
    return host.Alltoallv(s, counts.data(), sent_from.data(), ts, r, wanted.data(), received_at.data(), tr, c);
  else return host.Alltoallw(s, counts.data(), sent_from.data(), ts, r, wanted.data(), received_at.data(), tr, c);
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

template <class P, class Counts, class Places>
P parts(const void* buffer, Counts counts, Places places, MPI_Datatype type) {
  return {const_cast<void*>(buffer), counts, places, type, nullptr};
}
template <class P, class Counts, class Places>
P parts(const void* buffer, Counts counts, Places places, const MPI_Datatype* types) {
  return {const_cast<void*>(buffer), counts, places, MPI_DATATYPE_NULL, types};
}

// By the host's blocking and non-blocking forms; large-count ones a host may lack.
template <class Call, class Begin, class Count, class Place, class Types>
int exchange_by(const char* function, Call call, Begin begin, const void* s, const Count* ns, const Place* ds, Types ts,
                void* r, const Count* nr, const Place* dr, Types tr, MPI_Comm c) {
  using P = Parts<Count, Place>;
  constexpr bool large = std::is_same_v<Count, MPI_Count>;
  return exchange(
      function, parts<P>(s, ns, ds, ts), parts<P>(r, nr, dr, tr), c,
      [&] {
        if constexpr (large)
          if (!call) return without_large(function, s, ns, ds, ts, r, nr, dr, tr, c);
        return call(s, ns, ds, ts, r, nr, dr, tr, c);
      },
      [&](Count* given, Count* got, MPI_Request* request) {
        if constexpr (large)
          if (!begin) return begin_without_large(function, s, given, ds, ts, r, got, dr, tr, c, request);
        return begin(s, given, ds, ts, r, got, dr, tr, c, request);
      });
}

}  // namespace

int Alltoallv(const void* s, const int* ns, const int* ds, MPI_Datatype ts, void* r, const int* nr, const int* dr,
              MPI_Datatype tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallv", host.Alltoallv, host.Ialltoallv, s, ns, ds, ts, r, nr, dr, tr, c);
}
int Alltoallv_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, MPI_Datatype ts, void* r, const MPI_Count* nr,
                const MPI_Aint* dr, MPI_Datatype tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallv_c", host.Alltoallv_c, host.Ialltoallv_c, s, ns, ds, ts, r, nr, dr, tr, c);
}
int Alltoallw(const void* s, const int* ns, const int* ds, const MPI_Datatype* ts, void* r, const int* nr,
              const int* dr, const MPI_Datatype* tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallw", host.Alltoallw, host.Ialltoallw, s, ns, ds, ts, r, nr, dr, tr, c);
}
int Alltoallw_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, const MPI_Datatype* ts, void* r,
                const MPI_Count* nr, const MPI_Aint* dr, const MPI_Datatype* tr, MPI_Comm c) {
  return exchange_by("MPI_Alltoallw_c", host.Alltoallw_c, host.Ialltoallw_c, s, ns, ds, ts, r, nr, dr, tr, c);
}

}  // namespace nearfield::mpi
