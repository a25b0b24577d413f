// What a rank of its own does with what it gives: checks it, asks the host where it cannot tell, and copies it.
//
// The host is asked by calls that move nothing: whether a type is committed by a send to nobody, once per type; whether
// it combines a type by an operator by MPI_Reduce_local of no elements, which calls no operator of the program's.
#include "mpi/shim/collectives/self/self.hpp"

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/engine/combining.hpp"
#include "mpi/shim/collectives/task.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/p2p/point.hpp"
#include "mpi/shim/process/errors_returned.hpp"

namespace nearfield::mpi::self {
namespace {

using Layout = std::shared_ptr<const TypeLayout>;

bool is_committed(MPI_Datatype type, const TypeLayout& layout) {
  // Handles come back, but not in one epoch.
  const std::uint64_t this_one = ((std::uint64_t)type * 0x9e3779b97f4a7c15u ^ types_epoch()) | 1;
  if (layout.committed.load(std::memory_order_relaxed) == this_one) [[likely]]
    return true;
  const ErrorHandlerGuard guard;
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

// Returns whether both are one buffer, which a host may reject, and which else means that all is there already.
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

// Returns whether the operator is defined on the type, by our tables or by the host.
bool combines(MPI_Op op, MPI_Datatype type, const Layout& layout) {
  collectives::Call call{Collective::allreduce};
  if (!describe_reduction(call, 0, type, op)) [[likely]]
    return true;
  return combining::host_combines(op, type, layout);
}

// The data that a call has to move, as far as its arguments are right.
struct Judged {
  LocalData from, to;
  bool moves;  // else all is there already
};
// None: arguments that the host must judge.
std::optional<Judged> judge(const Work& work) {
  if (work.kind == Work::wrong) return std::nullopt;
  const bool reduces = work.kind == Work::combine;
  const bool in_place = work.kind == Work::keep || (reduces && work.from.buffer == MPI_IN_PLACE);
  const LocalData from(in_place ? work.to : work.from), to(work.to);
  if (!from.good || !to.good || from.data.bytes != to.data.bytes) return std::nullopt;
  if (reduces && !combines(work.op, work.to.type, to.layout)) return std::nullopt;
  const bool same = in_place || (to.data.bytes && same_place(work.from, work.to));
  if (same && !in_place && host_rejects_aliases) return std::nullopt;
  return Judged{from, to, !same && work.gets && to.data.bytes};
}

int move(const char* function, const Work& work, const Judged& judged, MPI_Comm comm) {
  const auto& [from, to, moves] = judged;
  if (!moves) return MPI_SUCCESS;
  if (from.packs() || to.packs()) return guarded(comm, function, [&] { return move_packed(work.from, work.to, comm); });
  if (devices::possible()) [[unlikely]]
    return guarded(comm, function, [&] { return move_by_devices(from.data, to.data, comm); });
  layout::copy(to.data, from.data, 0, to.data.bytes);
  return MPI_SUCCESS;
}

// The reduction that this thread has last found good, of a predefined type. Such types are never freed.
struct LastCombined {
  MPI_Op op;
  MPI_Datatype type;
  std::uint64_t bytes = 0;  // of an element; 0: nothing
};
const PerThread<LastCombined, threads::at::combined> last_combined;

[[gnu::noinline]] Outcome perform_slowly(Collective collective, const char* function, const Work& work, MPI_Comm comm,
                                         std::uint64_t start) {
  const auto judged = judge(work);
  if (!judged) return std::nullopt;
  const std::uint64_t bytes = judged->to.data.bytes;
  if (work.kind == Work::combine && !judged->to.layout && work.to.count)
    *last_combined = {work.op, work.to.type, bytes / std::uint64_t(work.to.count)};
  const int code = move(function, work, *judged, comm);
  return code == MPI_SUCCESS ? finish(collective, bytes, start) : code;
}

// As a task (../task.hpp), done by its start. Types and operators may be freed before the next one.
class LocalWork final : public NothingLeft {
 public:
  LocalWork(Collective collective, const char* function, const Work& work)
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
  int post() { return perform(collective_, function_, work_, host.self).value_or(MPI_ERR_ARG); }
  bool complete() const { return true; }
  int finalize() { return MPI_SUCCESS; }

 private:
  const Collective collective_;
  const char* const function_;
  Work work_;
  std::optional<Committed> types_[2];
  std::optional<InUse<Operator>> op_;
};

}  // namespace

int finish_slowly(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  return end_call(*process_ever(), {collective, bytes}, start, true);
}

Outcome perform(Collective collective, const char* function, const Work& work, MPI_Comm comm) {
  const std::uint64_t start = begin();
  const LocalBuffer &send = work.from, &recv = work.to;
  void* const to = const_cast<void*>(recv.buffer);
  if (work.kind == Work::wrong) return std::nullopt;
  if (work.kind == Work::keep) {
    if (const Plain plain(recv); plain.good) [[likely]]
      return finish(collective, plain.bytes, start);
  } else if (work.kind == Work::copy) {
    const Plain source(send), target(recv);
    if (source.good && target.good && source.bytes == target.bytes && send.buffer != to && !devices::possible())
        [[likely]] {
      copying::copy(to, send.buffer, source.bytes);
      return finish(collective, source.bytes, start);
    }
  } else {
    const LastCombined& last = *last_combined;
    if (last.bytes && last.op == work.op && last.type == recv.type && recv.count >= 0 && recv.count <= most &&
        is_memory(to) && send.buffer && send.buffer != to && !devices::possible()) [[likely]] {
      const std::uint64_t bytes = std::uint64_t(recv.count) * last.bytes;
      if (send.buffer != MPI_IN_PLACE && work.gets) copying::copy(to, send.buffer, bytes);
      return finish(collective, bytes, start);
    }
  }
  return perform_slowly(collective, function, work, comm, start);
}

Outcome plan(Collective collective, const char* function, const Work& work, MPI_Comm comm, MPI_Request* request) {
  if (!judge(work)) return std::nullopt;
  return guarded(comm, function, [&]() -> int {
    auto task = std::make_unique<CollectiveTask<LocalWork>>(collective, function, work);
    return report(comm, make_request(comm, std::move(task), true, request));
  });
}

}  // namespace nearfield::mpi::self
