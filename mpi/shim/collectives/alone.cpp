// What a rank of its own does with what it gives: checks it, asks the host where it cannot tell, and copies it.
//
// The host is asked by calls that move nothing: whether a type is committed by a send to nobody, once per type; whether
// it combines a type by an operator by MPI_Reduce_local of no elements, which calls no operator of the program's.
#include "mpi/shim/collectives/alone.hpp"

#include "mpi/shim/errors_returned.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi::alone {
namespace {

using Layout = std::shared_ptr<const TypeLayout>;

bool is_committed(MPI_Datatype type, const TypeLayout& layout) {
  if (layout.committed.load(std::memory_order_relaxed)) [[likely]]
    return true;
  const ErrorsReturned errors(host.self);
  const char unread = 0;
  const bool committed = host.Send(&unread, 1, type, MPI_PROC_NULL, 0, host.self) == MPI_SUCCESS;
  if (committed) layout.committed.store(true, std::memory_order_relaxed);
  return committed;
}

constexpr MPI_Count most = MPI_Count{1} << 48;  // elements of a predefined type; nobody has as much memory

bool is_memory(const void* buffer) { return buffer && buffer != MPI_IN_PLACE; }

// One side of nearly all calls: dense elements of a predefined type.
struct Plain {
  bool good = false;  // else it may be right, but not this
  std::uint64_t bytes = 0;

  explicit Plain(const Side& side) {
    const TypeInfo* const info = find_type(side.type);
    if (!info || !info->dense || side.count < 0 || side.count > most || !is_memory(side.buffer)) return;
    good = true;
    bytes = std::uint64_t(side.count) * info->bytes;
  }
};

// One side of any call, as far as it is right.
struct Part {
  layout::Data data;
  Layout layout;  // none: dense elements of a predefined type
  bool good;      // false: arguments that the host must judge

  explicit Part(const Side& side) : good(side.count >= 0 && side.buffer != MPI_IN_PLACE) {
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
bool same_place(const Side& from, const Side& to) {
  return from.buffer == to.buffer && from.count == to.count && from.type == to.type;
}

int move_packed(const Side& from, const Side& to, MPI_Comm comm) {
  Packed source(const_cast<void*>(from.buffer), from.count, from.type, comm);
  Packed target(const_cast<void*>(to.buffer), to.count, to.type, comm);
  if (!source.room() || !target.room()) throw std::bad_alloc();
  if (const int code = source.pack_all(); code != MPI_SUCCESS) return code;
  copying::copy(target.room(), source.room(), source.bytes());
  return target.unpack(0, std::size_t(to.count));
}

int move_by_devices(layout::Data from, layout::Data to, MPI_Comm comm) {
  const auto source = devices::stage(from, true), target = devices::stage(to, false);
  layout::copy(to, from, 0, from.bytes);
  return target && !target->store(from.bytes) ? raise_code(comm, MPI_ERR_BUFFER) : MPI_SUCCESS;
}

int move(const char* function, const Side& from, const Part& source, const Side& to, const Part& target,
         MPI_Comm comm) {
  const std::uint64_t bytes = source.data.bytes;
  if (bytes == 0) return MPI_SUCCESS;
  if (source.packs() || target.packs()) return guarded(comm, function, [&] { return move_packed(from, to, comm); });
  if (devices::possible()) [[unlikely]]
    return guarded(comm, function, [&] { return move_by_devices(source.data, target.data, comm); });
  if (source.layout == target.layout) layout::copy_alike(target.data, source.data);
  else layout::copy(target.data, source.data, 0, bytes);
  return MPI_SUCCESS;
}

// Whether the operator is defined on the type, by our tables or by the host.
bool combines(MPI_Op op, MPI_Datatype type, const Layout& layout) {
  collectives::Call call{Collective::allreduce};
  if (!describe_reduction(call, 0, type, op)) [[likely]]
    return true;
  // The last answer of each thread. The layout is kept, so that no later type is taken for this one.
  static thread_local struct {
    MPI_Op op;
    MPI_Datatype type;
    Layout layout;
    bool good = false;
  } last;
  if (last.good && last.op == op && last.type == type && last.layout == layout) return true;
  const ErrorsReturned world(host.world), self(host.self);
  std::max_align_t unread[2] = {};
  last.good = host.Reduce_local(&unread[0], &unread[1], 0, type, op) == MPI_SUCCESS;
  last.op = op;
  last.type = type;
  last.layout = layout;
  return last.good;
}

Outcome settle(Collective collective, int code, std::uint64_t bytes, std::uint64_t start) {
  return code == MPI_SUCCESS ? finish(collective, bytes, start) : code;
}

}  // namespace

int finish_slowly(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  // As in carry(): programs order the host's one-sided operations by collectives.
  if (open_windows.load(std::memory_order_relaxed)) node_ever()->progress.step_host();
  if (!stats_on) return MPI_SUCCESS;
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.bytes.fetch_add(bytes, std::memory_order_relaxed);
  t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int completed(int code, MPI_Request* request) {
  if (code == MPI_SUCCESS) *request = common_send();
  return code;
}

Outcome keep(Collective collective, const Side& side) {
  const std::uint64_t start = begin();
  const Plain plain(side);
  if (plain.good) [[likely]]
    return finish(collective, plain.bytes, start);
  const Part part(side);
  if (!part.good) return std::nullopt;
  return finish(collective, part.data.bytes, start);
}

namespace {

[[gnu::noinline]] Outcome copy_slowly(Collective collective, const char* function, const Side& from, const Side& to,
                                      MPI_Comm comm, std::uint64_t start) {
  const Part source(from), target(to);
  if (!source.good || !target.good || source.data.bytes != target.data.bytes) return std::nullopt;
  const bool same = source.data.bytes && same_place(from, to);
  if (same && host_rejects_aliases) return std::nullopt;
  return settle(collective, same ? MPI_SUCCESS : move(function, from, source, to, target, comm), source.data.bytes,
                start);
}

// What this thread has last found good, of a predefined type. Such types are never freed.
thread_local struct {
  MPI_Op op;
  MPI_Datatype type;
  std::uint64_t bytes = 0;  // of an element; 0: nothing
} last_combined;

[[gnu::noinline]] Outcome combine_slowly(Collective collective, const char* function, const Side& send, const Side& to,
                                         MPI_Op op, bool gets, MPI_Comm comm, std::uint64_t start) {
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const Side& from = in_place ? to : send;
  const Part source(from), target(to);
  if (!source.good || !target.good || !combines(op, to.type, source.layout)) return std::nullopt;
  const bool same = in_place || (source.data.bytes && same_place(from, to));
  if (same && !in_place && host_rejects_aliases) return std::nullopt;
  if (!source.layout && to.count) last_combined = {op, to.type, source.data.bytes / std::uint64_t(to.count)};
  return settle(collective, same || !gets ? MPI_SUCCESS : move(function, from, source, to, target, comm),
                source.data.bytes, start);
}

}  // namespace

Outcome copy(Collective collective, const char* function, const Side& from, const Side& to, MPI_Comm comm) {
  const std::uint64_t start = begin();
  const Plain source(from), target(to);
  if (source.good && target.good && source.bytes == target.bytes && from.buffer != to.buffer && !devices::possible())
      [[likely]] {
    copying::copy(const_cast<void*>(to.buffer), from.buffer, source.bytes);
    return finish(collective, source.bytes, start);
  }
  return copy_slowly(collective, function, from, to, comm, start);
}

Outcome combine(Collective collective, const char* function, const void* send, void* recv, MPI_Count count,
                MPI_Datatype type, MPI_Op op, bool gets, MPI_Comm comm) {
  const std::uint64_t start = begin();
  const bool in_place = send == MPI_IN_PLACE;
  if (last_combined.bytes && last_combined.op == op && last_combined.type == type && count >= 0 && count <= most &&
      is_memory(recv) && send && send != recv && !devices::possible()) [[likely]] {
    const std::uint64_t bytes = std::uint64_t(count) * last_combined.bytes;
    if (!in_place && gets) copying::copy(recv, send, bytes);
    return finish(collective, bytes, start);
  }
  return combine_slowly(collective, function, {send, count, type}, {recv, count, type}, op, gets, comm, start);
}

}  // namespace nearfield::mpi::alone
