// What a rank of its own does with what it gives: checks it, asks the host where it cannot tell, and copies it.
//
// The host is asked by calls that move nothing: whether a type is committed by a send to nobody, once per type; whether
// it combines a type by an operator by MPI_Reduce_local of no elements, which calls no operator of the program's.
#include "mpi/shim/collectives/single/alone.hpp"

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/engine/combining.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/errors_returned.hpp"

namespace nearfield::mpi::alone {
namespace {

using Layout = std::shared_ptr<const TypeLayout>;

bool is_committed(MPI_Datatype type, const TypeLayout& layout) {
  // Handles come back, but not in one epoch.
  const std::uint64_t this_one = ((std::uint64_t)type * 0x9e3779b97f4a7c15u ^ types_epoch()) | 1;
  if (layout.committed.load(std::memory_order_relaxed) == this_one) [[likely]]
    return true;
  const Asking asking;
  const char unread = 0;
  const bool committed = host.Send(&unread, 1, type, MPI_PROC_NULL, 0, host.self) == MPI_SUCCESS;
  if (committed) layout.committed.store(this_one, std::memory_order_relaxed);
  return committed;
}

constexpr MPI_Count most = MPI_Count{1} << 48;  // elements of a predefined type; nobody has as much memory

bool is_memory(const void* buffer) { return buffer && buffer != MPI_IN_PLACE; }

// One side of nearly all calls: dense elements of a predefined type.
struct Plain {
  bool good = false;  // else it may be right, but not this
  std::uint64_t bytes = 0;

  explicit Plain(const LocalBuffer& side) {
    const TypeInfo* const info = find_type(side.type);
    if (!info || !info->dense || side.count < 0 || side.count > most || !is_memory(side.buffer)) return;
    good = true;
    bytes = std::uint64_t(side.count) * info->bytes;
  }
};

// One side of any call, as far as it is right.
struct LocalData {
  layout::Data data;
  Layout layout;  // none: dense elements of a predefined type
  bool good;      // false: arguments that the host must judge

  explicit LocalData(const LocalBuffer& side) : good(side.count >= 0 && side.buffer != MPI_IN_PLACE) {
    if (!good) return;
    data.address = static_cast<std::byte*>(const_cast<void*>(side.buffer));
    if (const TypeInfo* const info = find_type(side.type); info && info->dense) [[likely]] {
      good = !__builtin_mul_overflow(std::uint64_t(side.count), info->bytes, &data.bytes);
    } else {
      layout = find_layout(side.type);
      good = layout && is_committed(side.type, *layout) &&
             !__builtin_mul_overflow(std::uint64_t(side.count), layout->size, &data.bytes);
      if (good) data.view = layout->view;
    }
    // Absolute addresses begin at MPI_BOTTOM, a null pointer in every ABI.
    if (dense() && !data.address && data.bytes) good = false;
  }
  bool packs() const { return layout && !layout->described; }
  bool dense() const { return data.dense() && !packs(); }
};

// What a host may reject, and else means that all is there already.
bool same_place(const LocalBuffer& from, const LocalBuffer& to) {
  return from.buffer == to.buffer && from.count == to.count && from.type == to.type;
}

int move_packed(const LocalBuffer& from, const LocalBuffer& to, MPI_Comm comm) {
  Packed source(const_cast<void*>(from.buffer), from.count, from.type, comm);
  Packed target(const_cast<void*>(to.buffer), to.count, to.type, comm);
  if (!source.room() || !target.room()) throw OutOfMemory();
  if (const int code = source.pack_all(); code != MPI_SUCCESS) return code;
  copying::copy(target.room(), source.room(), source.bytes());
  return target.unpack(0, std::size_t(to.count));
}

int move_by_devices(layout::Data from, layout::Data to, MPI_Comm comm) {
  const auto source = devices::stage(from, true), target = devices::stage(to, false);
  layout::copy(to, from, 0, from.bytes);
  return target && !target->store(from.bytes) ? raise_code(comm, MPI_ERR_BUFFER) : MPI_SUCCESS;
}

int move(const char* function, const LocalBuffer& from, const LocalData& source, const LocalBuffer& to,
         const LocalData& target, MPI_Comm comm) {
  const std::uint64_t bytes = source.data.bytes;
  if (bytes == 0) return MPI_SUCCESS;
  if (source.packs() || target.packs()) return guarded(comm, function, [&] { return move_packed(from, to, comm); });
  if (devices::possible()) [[unlikely]]
    return guarded(comm, function, [&] { return move_by_devices(source.data, target.data, comm); });
  layout::copy(target.data, source.data, 0, bytes);
  return MPI_SUCCESS;
}

// Whether the operator is defined on the type, by our tables or by the host.
bool combines(MPI_Op op, MPI_Datatype type, const Layout& layout) {
  collectives::Call call{Collective::allreduce};
  if (!describe_reduction(call, 0, type, op)) [[likely]]
    return true;
  return combining::host_combines(op, type, layout);
}

Outcome settle(Collective collective, int code, std::uint64_t bytes, std::uint64_t start) {
  return code == MPI_SUCCESS ? finish(collective, bytes, start) : code;
}

}  // namespace

int finish_slowly(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  // As in carry(): programs order the host's one-sided operations by collectives.
  if (open_windows.load(std::memory_order_relaxed)) process_ever()->progress.step_host();
  if (counting()) count_call(collective, bytes, start);
  return MPI_SUCCESS;
}

namespace {

Outcome keep(Collective collective, const LocalBuffer& side) {
  const std::uint64_t start = begin();
  const Plain plain(side);
  if (plain.good) [[likely]]
    return finish(collective, plain.bytes, start);
  const LocalData part(side);
  if (!part.good) return std::nullopt;
  return finish(collective, part.data.bytes, start);
}

[[gnu::noinline]] Outcome copy_slowly(Collective collective, const char* function, const LocalBuffer& from,
                                      const LocalBuffer& to, MPI_Comm comm, std::uint64_t start) {
  const LocalData source(from), target(to);
  if (!source.good || !target.good || source.data.bytes != target.data.bytes) return std::nullopt;
  const bool same = source.data.bytes && same_place(from, to);
  if (same && host_rejects_aliases) return std::nullopt;
  return settle(collective, same ? MPI_SUCCESS : move(function, from, source, to, target, comm), source.data.bytes,
                start);
}

// What this thread has last found good, of a predefined type. Such types are never freed.
struct LastCombined {
  MPI_Op op;
  MPI_Datatype type;
  std::uint64_t bytes = 0;  // of an element; 0: nothing
};
const PerThread<LastCombined, threads::at::combined> last_combined;

[[gnu::noinline]] Outcome combine_slowly(Collective collective, const char* function, const LocalBuffer& send,
                                         const LocalBuffer& to, MPI_Op op, bool gets, MPI_Comm comm,
                                         std::uint64_t start) {
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const LocalBuffer& from = in_place ? to : send;
  const LocalData source(from), target(to);
  if (!source.good || !target.good || !combines(op, to.type, source.layout)) return std::nullopt;
  const bool same = in_place || (source.data.bytes && same_place(from, to));
  if (same && !in_place && host_rejects_aliases) return std::nullopt;
  if (!source.layout && to.count) *last_combined = {op, to.type, source.data.bytes / std::uint64_t(to.count)};
  return settle(collective, same || !gets ? MPI_SUCCESS : move(function, from, source, to, target, comm),
                source.data.bytes, start);
}

Outcome copy(Collective collective, const char* function, const LocalBuffer& from, const LocalBuffer& to,
             MPI_Comm comm) {
  const std::uint64_t start = begin();
  const Plain source(from), target(to);
  if (source.good && target.good && source.bytes == target.bytes && from.buffer != to.buffer && !devices::possible())
      [[likely]] {
    copying::copy(const_cast<void*>(to.buffer), from.buffer, source.bytes);
    return finish(collective, source.bytes, start);
  }
  return copy_slowly(collective, function, from, to, comm, start);
}

Outcome combine(Collective collective, const char* function, const Work& work, MPI_Comm comm) {
  const std::uint64_t start = begin();
  const auto& [recv, count, type] = work.to;
  const void* const send = work.from.buffer;
  const LastCombined& last = *last_combined;
  if (last.bytes && last.op == work.op && last.type == type && count >= 0 && count <= most && is_memory(recv) && send &&
      send != recv && !devices::possible()) [[likely]] {
    const std::uint64_t bytes = std::uint64_t(count) * last.bytes;
    if (send != MPI_IN_PLACE && work.gets) copying::copy(const_cast<void*>(recv), send, bytes);
    return finish(collective, bytes, start);
  }
  return combine_slowly(collective, function, work.from, work.to, work.op, work.gets, comm, start);
}

// Types and operators may be freed before the next start.
class Repeated final : public Activity {
 public:
  Repeated(Collective collective, const char* function, const Work& work)
      : collective_(collective), function_(function), work_(work) {
    for (LocalBuffer* const side : {&work_.from, &work_.to}) {
      if (side->type == MPI_Datatype{} || find_type(side->type)) continue;
      auto& kept = types_[side == &work_.to];
      kept.emplace(side->type);
      if (!kept->good()) throw OutOfMemory();
      side->type = kept->type();
    }
    if (work.kind == Work::combine) op_.emplace(work.op);
    if (work.from.type == work.to.type) work_.from.type = work_.to.type;  // the same layout, and not packed
  }
  int begin() override {
    const Outcome outcome = perform(collective_, function_, work_, host.self);
    return outcome ? *outcome : MPI_ERR_ARG;
  }
  bool completed() override { return true; }
  int outcome() override { return MPI_SUCCESS; }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override {}
  bool involves(int) const override { return false; }

 private:
  const Collective collective_;
  const char* const function_;
  Work work_;
  std::optional<Committed> types_[2];
  std::optional<InUse<Operator>> op_;
};

// Whether it can be done.
bool is_right(const Work& work) {
  if (work.kind == Work::wrong) return false;
  const LocalData to(work.to);
  if (!to.good || work.kind == Work::keep) return to.good;
  const LocalBuffer& send = work.kind == Work::combine && work.from.buffer == MPI_IN_PLACE ? work.to : work.from;
  const LocalData from(send);
  if (!from.good || from.data.bytes != to.data.bytes) return false;
  if (work.kind == Work::combine) return combines(work.op, work.to.type, to.layout);
  return !(from.data.bytes && same_place(work.from, work.to) && host_rejects_aliases);
}

}  // namespace

Outcome perform(Collective collective, const char* function, const Work& work, MPI_Comm comm) {
  switch (work.kind) {
    case Work::keep: return keep(collective, work.to);
    case Work::copy: return copy(collective, function, work.from, work.to, comm);
    case Work::combine: return combine(collective, function, work, comm);
    case Work::wrong: break;
  }
  return std::nullopt;
}

Outcome plan(Collective collective, const char* function, const Work& work, MPI_Comm comm, MPI_Request* request) {
  if (!is_right(work)) return std::nullopt;
  return guarded(comm, function, [&]() -> int {
    return report(comm, make_request(comm, std::make_unique<Repeated>(collective, function, work), true, request));
  });
}

}  // namespace nearfield::mpi::alone
