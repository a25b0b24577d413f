// MPI_Put, MPI_Get and the forms with requests: the origin copies from one layout to the other. The copy is complete
// when the call returns, so requests are complete at once.
#pragma once
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/process/at_host.hpp"
#include "mpi/shim/rma/target.hpp"

namespace nearfield::mpi {

enum class AccessDirection : std::uint8_t { put, get };

inline void move_dense(windows::Window& window, AccessDirection direction, int rank, std::byte* theirs, void* ours,
                       std::uint64_t bytes) {
  if (direction == AccessDirection::put) window.put(rank, theirs, ours, bytes);
  else window.get(rank, theirs, ours, bytes);
}

// Moves by packing: types that no layout describes, and memory of devices.
template <class N>
int move_packed(OneSided& state, const char* function, AccessDirection direction, void* ours, N count,
                MPI_Datatype type, void* theirs, N target_count, MPI_Datatype target_type) {
  if (direction == AccessDirection::get) {
    std::swap(ours, theirs);
    std::swap(count, target_count);
    std::swap(type, target_type);
  }
  Packed from(ours, count, type, host.self), to(theirs, target_count, target_type, host.self);
  if (from.error() || to.error()) return raise_on(state.win, function, "a buffer that is none", MPI_ERR_BUFFER);
  if (!from.room() || !to.room()) return raise_on(state.win, function, "no memory to pack the data", MPI_ERR_NO_MEM);
  if (int code = from.pack_all(); code != MPI_SUCCESS) return code;
  copying::copy(to.room(), from.room(), from.bytes());
  return to.dense() ? MPI_SUCCESS : to.unpack_bytes(from.bytes());
}

template <class N, class HostCall>
[[gnu::noinline]] int move_slowly(OneSided* state, const char* function, AccessDirection direction, const void* buffer,
                                  N count, MPI_Datatype type, int rank, MPI_Aint displacement, N target_count,
                                  MPI_Datatype target_type, MPI_Win win, HostCall host_call) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  windows::Window& window = *state->window;
  if (unsigned(rank) >= unsigned(window.size())) return host_call();
  const windows::Memory& memory = window.memory(rank);
  std::byte* const at = address_of(memory, displacement);
  const TypedData ours(buffer, count, type), theirs(at, target_count, target_type);
  if (!ours.good || target_count < 0 || (!theirs.good && memory.bytes)) return host_call();
  if (!window.accessible(rank)) return raise_no_epoch(win, function);
  const TypedData &from = direction == AccessDirection::put ? ours : theirs,
                  &to = direction == AccessDirection::put ? theirs : ours;
  if (from.data.bytes > to.data.bytes)
    return raise_on(win, function, "the target has no room for the data", MPI_ERR_TRUNCATE);
  if (!theirs.packs() && !lies_in(memory, displacement, theirs.data)) return raise_range(win, function, displacement);
  count_one_sided(one_sided_counts.moves, from.data.bytes);
  if (ours.packs() || theirs.packs() || (devices::possible() && devices::is_device(ours.data))) [[unlikely]]
    return on_window(win, function, [&] {
      return move_packed(*state, function, direction, const_cast<void*>(buffer), count, type, at, target_count,
                         target_type);
    });
  if (from.data.dense() && to.data.dense())
    move_dense(window, direction, rank, theirs.data.address, ours.data.address, from.data.bytes);
  else layout::copy(to.data, from.data, 0, from.data.bytes);
  return MPI_SUCCESS;
}

// `request`: the last argument of MPI_Rput and MPI_Rget.
template <Function number, AccessDirection direction, class Buffer, class N, class... Request>
static int move(Buffer* buffer, N count, MPI_Datatype type, int rank, MPI_Aint displacement, N target_count,
                MPI_Datatype target_type, MPI_Win win, Request... request) {
  return at_once(
      win,
      [&]() -> int {
        const auto host_call = [&]() -> int {
          return at_host<number>(buffer, count, type, rank, displacement, target_count, target_type, win, request...);
        };
        OneSided* const state = one_sided(win);
        if (!state) return host_call();
        const Quick quick(*state->window, buffer, count, type, rank, displacement, target_count, target_type);
        if (!quick.at)
          return move_slowly(state, name_of(number), direction, buffer, count, type, rank, displacement, target_count,
                             target_type, win, host_call);
        move_dense(*state->window, direction, rank, quick.at, const_cast<void*>(static_cast<const void*>(buffer)),
                   quick.bytes);
        count_one_sided(one_sided_counts.moves, quick.bytes);
        return MPI_SUCCESS;
      },
      request...);
}

}  // namespace nearfield::mpi
