#include "mpi/shim/collectives/engine/folding.hpp"

#include <algorithm>
#include <climits>
#include <vector>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/errors_returned.hpp"

namespace nearfield::mpi::combining {

// The last answer of each thread. It holds the layout, so a later type with the same handle has another layout pointer.
struct LastAsked {
  MPI_Op op;
  MPI_Datatype type;
  std::shared_ptr<const TypeLayout> layout;
  bool good = false;
};
static const PerThread<LastAsked> last_asked;

bool host_combines(MPI_Op op, MPI_Datatype type, const std::shared_ptr<const TypeLayout>& layout) {
  LastAsked& last = *last_asked;
  if (last.good && last.op == op && last.type == type && last.layout == layout) return true;
  const ErrorHandlerGuard guard;
  std::max_align_t unread[2] = {};
  last.good = host.Reduce_local(&unread[0], &unread[1], 0, type, op) == MPI_SUCCESS;
  last.op = op;
  last.type = type;
  last.layout = layout;
  return last.good;
}

bool possible(MPI_Datatype type, MPI_Op op) {
  const TypeInfo* const info = find_type(type);
  if (info && info->dense) return host_combines(op, type, nullptr);
  const auto layout = find_layout(type);
  return layout && host_combines(op, type, layout);
}

Fold::Fold(MPI_Datatype type, MPI_Op op, MPI_Comm comm)
    : type_(type), op_(op), comm_(comm), as_packed_(nullptr, 0, type, comm) {
  collectives::Call call{collectives::Collective::allreduce};
  if (as_packed_.as_packed() && !describe_reduction(call, 1, type, op) && call.bytes == element()) kernel_ = call.fold;
}

void Fold::keep() {
  comm_ = host.self;
  kept_op_.emplace(op_);
  if (!find_type(type_)) kept_type_.emplace(type_);
}

// Number of elements combined at a time: calling an operator costs little, and two pieces fit into a private cache.
std::size_t Fold::piece() const {
  constexpr std::size_t bytes = 128 << 10;
  return std::clamp<std::size_t>(bytes / element(), 1, INT_MAX);
}

// Room for `count` elements around an origin that is aligned for every type.
struct Fold::Laid {
  Laid(MPI_Datatype type, std::size_t count, MPI_Comm comm)
      : room(make(type, count)), data(origin, count, type, comm) {}

  std::byte* origin = nullptr;
  memory::Temporary room;
  Packed data;

 private:
  memory::Temporary make(MPI_Datatype type, std::size_t count) {
    constexpr MPI_Aint aligned = 64;
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    host.Type_get_extent(type, &low, &extent);
    host.Type_get_true_extent(type, &true_low, &true_extent);
    const MPI_Aint last = MPI_Aint(count - 1) * extent;
    const MPI_Aint begin = std::min(low, true_low) + std::min<MPI_Aint>(last, 0);
    const MPI_Aint end = std::max(low + extent, true_low + true_extent) + std::max<MPI_Aint>(last, 0);
    memory::Temporary made(std::size_t(std::max<MPI_Aint>(end - begin, 1) + aligned));
    if (!made.data()) throw OutOfMemory();
    const MPI_Aint before = (-begin + (begin < 0 ? aligned - 1 : 0)) / aligned * aligned;
    origin = static_cast<std::byte*>(const_cast<void*>(offset_by(made.data(), std::uintptr_t(before))));
    return made;
  }
};

// Unpacks each operand into one of two buffers in which elements have their layout in memory.
int Fold::combine_laid(std::byte* places, std::size_t place_bytes, int n, std::size_t count, bool prefixes) const {
  const std::size_t most = std::min(piece(), count);
  Laid first(type_, most, comm_), second(type_, most, comm_);
  Laid *so_far = &first, *next = &second;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t now = std::min(most, count - at);
    std::byte* place = places + at * element();
    if (const int code = so_far->data.store(place, 0, now); code != MPI_SUCCESS) return code;
    for (int r = 1; r < n; ++r) {
      place += place_bytes;
      if (const int code = next->data.store(place, 0, now); code != MPI_SUCCESS) return code;
      if (const int code = reduce_local(so_far->origin, next->origin, now); code != MPI_SUCCESS) return code;
      std::swap(so_far, next);
      if (!prefixes && r + 1 < n) continue;
      if (const int code = so_far->data.load(place, 0, now); code != MPI_SUCCESS) return code;
    }
  }
  return MPI_SUCCESS;
}

int Fold::combine(std::byte* places, std::size_t place_bytes, int n, std::size_t count, bool prefixes) const {
  if (n < 2 || count == 0) return MPI_SUCCESS;
  if (!as_packed_.as_packed()) return combine_laid(places, place_bytes, n, count, prefixes);
  if (kernel_ && !prefixes) {
    std::vector<const void*> operands(std::size_t(n), places);
    for (int r = 1; r < n; ++r) operands[std::size_t(r)] = places + std::size_t(r) * place_bytes;
    void* const result = places + std::size_t(n - 1) * place_bytes;
    kernel_(&result, 1, operands.data(), operands.size(), count);
    return MPI_SUCCESS;
  }
  const std::size_t most = n > 2 ? piece() : INT_MAX;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t now = std::min(most, count - at);
    std::byte* place = places + at * element();
    for (int r = 1; r < n; ++r, place += place_bytes)
      if (const int code = reduce_local(place, place + place_bytes, now); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi::combining
