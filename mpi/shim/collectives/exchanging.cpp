// All-to-all of lengths and types that differ by pair: MPI_Alltoallv and MPI_Alltoallw, as messages between all pairs.
//
// What a member exchanges is known to its partner alone, so nothing is agreed beforehand: each pair finds out for
// itself what its memory allows (engine/messages). Short messages are sent first, as a rule at once; otherwise all
// receives are posted before the first send. Both follow the rotated order, in which every member has a partner of its
// own at each step. The messages have a context of their own.
#include <algorithm>
#include <memory>
#include <numeric>

#include "engine/orders/orders.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {
namespace {

// One side of the exchange: for each partner so many elements of a type, displaced from the buffer.
template <class Count, class Displacement>
struct Parts {
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
  void* place_of(int partner) const {
    return static_cast<std::byte*>(buffer) + MPI_Aint(displacements[partner]) * (types ? 1 : extent);
  }
};

// What goes to or comes from one partner. Data of types that are not described is packed.
struct Part {
  layout::Data data;
  std::shared_ptr<const TypeLayout> layout;
  std::unique_ptr<Packed> packed;
  std::unique_ptr<devices::Stage> stage;
  std::size_t count = 0;

  // False: arguments that the host must judge.
  template <class P>
  bool describe(const P& parts, int partner, bool sends, MPI_Comm comm) {
    if (parts.counts[partner] < 0) return false;
    count = std::size_t(parts.counts[partner]);
    if (count == 0) return true;
    TypedData typed(parts.place_of(partner), parts.counts[partner], parts.type_of(partner));
    if (!typed.good) return false;
    data = typed.data;
    layout = std::move(typed.layout);
    if (!layout || layout->described) {
      stage = devices::stage(data, sends);
      return true;
    }
    packed = std::make_unique<Packed>(parts.place_of(partner), parts.counts[partner], parts.type_of(partner), comm);
    data = packed->data();
    return !sends || packed->pack_all() == MPI_SUCCESS;
  }
};

class Exchange {
 public:
  explicit Exchange(const Communicator& c)
      : c_(c), p_(c.size), send_(std::size_t(c.size)), recv_(std::size_t(c.size)) {}

  template <class P>
  bool describe(const P& send, const P& recv, bool in_place) {
    for (int r = 0; r < p_; ++r)
      if (!recv_[std::size_t(r)].describe(recv, r, false, c_.comm) ||
          !(in_place || send_[std::size_t(r)].describe(send, r, true, c_.comm)))
        return false;
    return true;
  }

  // What is sent lies where it will be received: it goes by way of a copy.
  void copy_aside() {
    const std::size_t all = std::accumulate(recv_.begin(), recv_.end(), std::size_t{0},
                                            [](std::size_t sum, const Part& part) { return sum + part.data.bytes; });
    aside_.emplace(std::max<std::size_t>(all, 1));
    if (!aside_->data()) throw std::bad_alloc();
    std::byte* at = aside_->data();
    for (int r = 0; r < p_; ++r) {
      Part& part = recv_[std::size_t(r)];
      if (part.packed && part.packed->pack(0, part.count) != MPI_SUCCESS) throw std::bad_alloc();
      if (part.stage && !part.stage->fetch()) throw std::bad_alloc();
      layout::gather(at, part.data, 0, part.data.bytes);
      send_[std::size_t(r)].data = {at, part.data.bytes, {}};
      at += part.data.bytes;
    }
  }

  std::uint64_t bytes() const {
    return std::accumulate(send_.begin(), send_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Part& part) { return sum + part.data.bytes; });
  }

  // What run() needs of memory: from the first message on nothing may be missing.
  void prepare() {
    later_.reserve(std::size_t(p_));
    if (!short_ones()) requests_ = std::make_unique<messages::Request[]>(2 * std::size_t(p_));
  }

  int run() {
    const layout::Data &own = send_[std::size_t(c_.rank)].data, &place = recv_[std::size_t(c_.rank)].data;
    int code = own.bytes > place.bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    layout::copy(place, own, 0, std::min(own.bytes, place.bytes));
    if (!requests_) {
      each_send([&](int to, const layout::Data& data) {
        if (!the_messenger->send_at_once(c_.members[std::size_t(to)], {context_, c_.rank, tag}, data))
          later_.push_back(to);
      });
      if (!later_.empty()) requests_.reset(new (std::nothrow) messages::Request[2 * std::size_t(p_)]);
      if (!requests_) {
        // One after the other; peers take in what they are not waiting for.
        for (const int to : later_) transfer(true, to, send_[std::size_t(to)].data, code);
        each_receive([&](int from, const layout::Data& data) { transfer(false, from, data, code); });
        return finish(code);
      }
    } else {
      each_send([&](int to, const layout::Data&) { later_.push_back(to); });
    }
    std::size_t used = 0;
    try {
      each_receive([&](int from, const layout::Data& data) {
        messages::Request& r = requests_[used++];
        prepare_receive(r, c_, from, tag, data);
        r.envelope.context = context_;
        the_messenger->start(r);
      });
      for (const int to : later_) {
        messages::Request& r = requests_[used++];
        prepare_send(r, c_, to, tag, SendMode::standard, send_[std::size_t(to)].data);
        r.envelope.context = context_;
        the_messenger->start(r);
      }
      for (std::size_t i = 0; i < used; ++i) {
        the_messenger->wait(requests_[i]);
        judge(requests_[i], code);
      }
    } catch (...) {
      for (std::size_t i = 0; i < used; ++i)
        if (!requests_[i].complete()) the_messenger->abandon(requests_[i]);
      throw;
    }
    return finish(code);
  }

  // For a member that cannot take part, without memory: the others get nothing from it, which they notice, and what
  // they send to it is let in and dropped.
  template <class P>
  static void refuse(const Communicator& c, const P& send, const P& recv, bool in_place) {
    const std::uint64_t context = context_of(c);
    auto any = [](const P& parts, int partner) {
      MPI_Count size = 0;
      return parts.counts[partner] > 0 && host.Type_size_x(parts.type_of(partner), &size) == MPI_SUCCESS && size > 0;
    };
    for (const bool sends : {true, false})
      for (int r = 0; r < c.size; ++r) {
        if (r == c.rank || !any(sends && !in_place ? send : recv, r)) continue;
        int code = MPI_SUCCESS;
        transfer(c, context, sends, r, {}, code);
      }
  }

 private:
  static constexpr int tag = 0;
  static std::uint64_t context_of(const Communicator& c) { return mix_context(c.context, ~std::uint64_t{0}); }
  static void transfer(const Communicator& c, std::uint64_t context, bool sends, int partner, const layout::Data& data,
                       int& code) {
    messages::Request r;
    if (sends) prepare_send(r, c, partner, tag, SendMode::standard, data);
    else prepare_receive(r, c, partner, tag, data);
    r.envelope.context = context;
    the_messenger->start(r);
    wait_for(r);
    judge(r, code);
  }
  void transfer(bool sends, int partner, const layout::Data& data, int& code) const {
    transfer(c_, context_, sends, partner, data, code);
  }
  // Nothing where something was expected: the partner has refused.
  static void judge(const messages::Request& r, int& code) {
    if (code == MPI_SUCCESS) code = outcome(r);
    if (code == MPI_SUCCESS && !r.is_send && r.received == 0 && r.data.bytes) code = MPI_ERR_OTHER;
  }
  // Short messages leave at once, as a rule: then no request is under way while we receive.
  bool short_ones() const {
    constexpr std::uint64_t short_bytes = 4096;
    return std::ranges::all_of(send_, [](const Part& part) { return part.data.bytes <= short_bytes; });
  }
  template <class Send>
  void each_send(Send send) const {
    orders::each_partner(orders::Order::rotated, p_, p_, c_.rank, [&](int to) {
      if (const layout::Data& data = send_[std::size_t(to)].data; data.bytes && to != c_.rank) send(to, data);
    });
  }
  template <class Receive>
  void each_receive(Receive receive) const {
    orders::each_partner(orders::Order::rotated, p_, p_, c_.rank, [&](int to) {
      const int from = (2 * c_.rank - to + p_) % p_;  // whose turn it is to send to us
      if (const layout::Data& data = recv_[std::size_t(from)].data; data.bytes && from != c_.rank) receive(from, data);
    });
  }
  int finish(int code) {
    for (Part& part : recv_) {
      if (part.packed && code == MPI_SUCCESS) code = part.packed->unpack(0, part.count);
      if (part.stage && code == MPI_SUCCESS && !part.stage->store(part.data.bytes)) code = MPI_ERR_BUFFER;
    }
    return code;
  }
  const Communicator& c_;
  const int p_;
  const std::uint64_t context_ = context_of(c_);
  std::vector<Part> send_, recv_;
  std::vector<int> later_;                         // whom we could not send to at once
  std::unique_ptr<messages::Request[]> requests_;  // of long messages
  std::optional<memory::Temporary> aside_;
};

// What MPICH rejects. Nothing more may go to the host for such a reason, since the other ranks do not know of it.
template <class P>
bool aliased(const P& send, const P& recv) {
  return host_rejects_aliases && send.buffer && send.buffer == recv.buffer && send.counts == recv.counts &&
         send.type == recv.type && send.types == recv.types;
}

template <class P, class HostCall>
int exchange(const char* function, P send, P recv, MPI_Comm comm, HostCall host_call) {
  Tally& tally = recv.types ? alltoallw_tally : alltoallv_tally;
  const std::uint64_t start = stats_on ? waiting::nanoseconds() : 0;
  auto count = [&](std::uint64_t bytes, std::optional<Reason> why) {
    if (!start) [[likely]]
      return;
    tally.calls.fetch_add(1, std::memory_order_relaxed);
    tally.bytes.fetch_add(bytes, std::memory_order_relaxed);
    tally.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
    if (why) tally.host[std::size_t(*why)].fetch_add(1, std::memory_order_relaxed);
  };
  const bool in_place = send.buffer == MPI_IN_PLACE;
  Communicator* const c = channel(comm);
  auto to_the_host = [&](Reason why) {
    last_algorithm = "host";
    const StandIn stand_in;
    const int code = host_call();
    count(0, why);
    return code;
  };
  if (!c || c->inter) {
    const Communicator* const state = the_messenger ? communicator_of(comm) : nullptr;
    return to_the_host(state && !state->messages_on ? Reason::off : Reason::communicator);
  }
  if (aliased(send, recv) || !recv.prepare() || !(in_place || send.prepare())) return to_the_host(Reason::argument);
  if (recv.empty(c->size) && (in_place || send.empty(c->size))) {
    last_algorithm = "messages";
    count(0, std::nullopt);
    return MPI_SUCCESS;
  }
  return guarded(comm, function, [&]() -> int {
    std::optional<Exchange> ready;
    try {
      ready.emplace(*c);
      if (!ready->describe(send, recv, in_place)) return to_the_host(Reason::argument);
      if (in_place) ready->copy_aside();
      ready->prepare();
    } catch (const std::bad_alloc&) {
      Exchange::refuse(*c, send, recv, in_place);
      throw;
    }
    Exchange& all = *ready;
    const int code = report(comm, all.run());
    if (open_windows.load(std::memory_order_relaxed)) the_messenger->node().progress.step_host();
    last_algorithm = "messages";
    count(all.bytes(), std::nullopt);
    return code;
  });
}

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
  const auto counts = narrowed(in_place ? nullptr : ns), places = narrowed(in_place ? nullptr : ds);
  const auto wanted = narrowed(nr), where = narrowed(dr);
  if (!fits)
    return raise(c, function, "this MPI library has no large-count form, and a count or displacement exceeds an int");
  if constexpr (std::is_same_v<Types, MPI_Datatype>)
    return host.Alltoallv(s, counts.data(), places.data(), ts, r, wanted.data(), where.data(), tr, c);
  else return host.Alltoallw(s, counts.data(), places.data(), ts, r, wanted.data(), where.data(), tr, c);
}

void* in(const void* buffer) { return const_cast<void*>(buffer); }

}  // namespace

int Alltoallv(const void* s, const int* ns, const int* ds, MPI_Datatype ts, void* r, const int* nr, const int* dr,
              MPI_Datatype tr, MPI_Comm c) {
  using P = Parts<int, int>;
  return exchange("MPI_Alltoallv", P{in(s), ns, ds, ts, nullptr}, P{r, nr, dr, tr, nullptr}, c,
                  [&] { return host.Alltoallv(s, ns, ds, ts, r, nr, dr, tr, c); });
}
int Alltoallv_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, MPI_Datatype ts, void* r, const MPI_Count* nr,
                const MPI_Aint* dr, MPI_Datatype tr, MPI_Comm c) {
  using P = Parts<MPI_Count, MPI_Aint>;
  return exchange("MPI_Alltoallv_c", P{in(s), ns, ds, ts, nullptr}, P{r, nr, dr, tr, nullptr}, c, [&] {
    if (host.Alltoallv_c) return host.Alltoallv_c(s, ns, ds, ts, r, nr, dr, tr, c);
    return without_large("MPI_Alltoallv_c", s, ns, ds, ts, r, nr, dr, tr, c);
  });
}
int Alltoallw(const void* s, const int* ns, const int* ds, const MPI_Datatype* ts, void* r, const int* nr,
              const int* dr, const MPI_Datatype* tr, MPI_Comm c) {
  using P = Parts<int, int>;
  return exchange("MPI_Alltoallw", P{in(s), ns, ds, MPI_DATATYPE_NULL, ts}, P{r, nr, dr, MPI_DATATYPE_NULL, tr}, c,
                  [&] { return host.Alltoallw(s, ns, ds, ts, r, nr, dr, tr, c); });
}
int Alltoallw_c(const void* s, const MPI_Count* ns, const MPI_Aint* ds, const MPI_Datatype* ts, void* r,
                const MPI_Count* nr, const MPI_Aint* dr, const MPI_Datatype* tr, MPI_Comm c) {
  using P = Parts<MPI_Count, MPI_Aint>;
  return exchange("MPI_Alltoallw_c", P{in(s), ns, ds, MPI_DATATYPE_NULL, ts}, P{r, nr, dr, MPI_DATATYPE_NULL, tr}, c,
                  [&] {
                    if (host.Alltoallw_c) return host.Alltoallw_c(s, ns, ds, ts, r, nr, dr, tr, c);
                    return without_large("MPI_Alltoallw_c", s, ns, ds, ts, r, nr, dr, tr, c);
                  });
}

}  // namespace nearfield::mpi
