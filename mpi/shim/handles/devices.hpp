// Memory of accelerators: GPU-aware hosts accept it in every call, but the CPU cannot access it.
//
// Only the rank itself knows its kinds of pointers, so such a call cannot go to the host: its partner may have the data
// in ordinary memory and take part here. Device memory is copied to or from a buffer in ordinary memory (packing.hpp)
// by its run-time (CUDA or HIP, found if it is loaded, never linked), and the call proceeds with that buffer. Memory
// that the CPU can access (managed, pinned) is used as it is.
//
// A run-time may be loaded at any time, usually long after MPI_Init. One load notices new libraries: `newest` is the
// last known entry of the loader's list, kept from being unloaded, so a new library follows it.
#pragma once
#include <link.h>

#include <atomic>
#include <cstddef>

#include "engine/layout/layout.hpp"

namespace nearfield::mpi::devices {

inline constinit std::atomic<const link_map*> newest{nullptr};
inline constinit std::atomic<bool> loaded{false};  // a run-time has been bound
void look_again();

// Returns whether pointers may be to device memory.
[[gnu::always_inline]] inline bool possible() {
  const link_map* const last = newest.load(std::memory_order_acquire);  // SYNC: newest-library
  if (!last || last->l_next) [[unlikely]]
    look_again();
  return loaded.load(std::memory_order_relaxed);
}

bool is_device(const void* address);
bool is_device(const layout::Data& data);  // true if any byte of `data` is in device memory

// As layout::gather and scatter, for data of which some is device memory. The copies are complete when they return;
// false: the run-time has failed.
bool gather(void* to, const layout::Data& from, std::uint64_t position, std::uint64_t bytes);
bool scatter(const layout::Data& to, std::uint64_t position, const void* from, std::uint64_t bytes);

}  // namespace nearfield::mpi::devices
