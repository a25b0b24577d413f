// Finds the target address of an operation and checks that it lies in the window.
#pragma once
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/handles/layouts.hpp"
#include "mpi/shim/handles/requests.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {

// Calculates with integers, since a displacement may be wrong by any amount.
inline std::byte* address_of(const windows::Memory& memory, MPI_Aint displacement) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(memory.base) +
                                      std::uint64_t(displacement) * memory.unit);
}

// Returns whether all of `data`, which begins `displacement` units into the memory, lies in it.
inline bool lies_in(const windows::Memory& memory, MPI_Aint displacement, const layout::Data& data) {
  if (data.bytes == 0) return displacement >= 0;
  const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(memory.base),
                       begin = reinterpret_cast<std::uintptr_t>(data.begin());
  return std::uint64_t(std::abs(displacement)) <=
             (memory.bytes + std::uint64_t(std::abs(data.view.low))) / memory.unit &&
         begin >= base && begin - base <= memory.bytes && data.span() <= memory.bytes - (begin - base);
}

// The common case: a valid call that moves `count` elements of one dense predefined type on both sides, in ordinary
// memory. All others take the slow path.
struct Quick {
  std::byte* at = nullptr;  // nullptr: another case
  const TypeInfo* type = nullptr;
  std::uint64_t bytes = 0;

  template <class N>
  [[gnu::always_inline]] Quick(const windows::Window& window, const void* ours, N count, MPI_Datatype our_type,
                               int rank, MPI_Aint displacement, N target_count, MPI_Datatype target_type) {
    if (unsigned(rank) >= unsigned(window.size()) || our_type != target_type || count != target_count || count <= 0 ||
        displacement < 0 || !ours || !window.accessible(rank) || devices::possible())
      return;
    type = find_type(our_type);
    if (!type || !type->dense) return;
    const windows::Memory& memory = window.memory(rank);
    std::uint64_t offset, end;
    if (__builtin_mul_overflow(std::uint64_t(displacement), memory.unit, &offset) ||
        __builtin_mul_overflow(std::uint64_t(count), std::uint64_t(type->bytes), &bytes) ||
        __builtin_add_overflow(offset, bytes, &end) || end > memory.bytes)
      return;
    at = memory.base + offset;
  }
};

inline int raise_no_epoch(MPI_Win win, const char* function) {
  return raise_on(win, function, "no open epoch allows access to the target", MPI_ERR_RMA_SYNC);
}
inline int raise_range(MPI_Win win, const char* function, MPI_Aint displacement) {
  if (displacement < 0) return raise_on(win, function, "the displacement is negative", MPI_ERR_DISP);
  return raise_on(win, function, "the data lie outside of the target's window", MPI_ERR_RMA_RANGE);
}

// Runs an operation, perhaps with a request. If Nearfield serves the window, the request is complete at once.
template <class Call>
[[gnu::always_inline]] inline int at_once(MPI_Win, const Call& call) {
  return call();
}
template <class Call>
int at_once(MPI_Win win, const Call& call, MPI_Request* request) {
  const int code = call();
  if (!one_sided(win) || !request) return code;
  *request = code == MPI_SUCCESS ? common_send() : host.request_null;
  note_look();
  return code;
}

}  // namespace nearfield::mpi
