// Memory of accelerators: GPU-aware hosts accept it in every call, but the CPU cannot access it.
//
// Only the rank itself knows its kinds of pointers, so such a call cannot go to the host: its partner may have the data
// in ordinary memory and take part here. Device memory is copied to or from a buffer in ordinary memory by its run-time
// (CUDA or HIP, found if it is loaded, never linked), and the call proceeds with that buffer. Memory that the CPU can
// access (managed, pinned) is used as it is.
//
// A run-time may be loaded at any time, usually long after MPI_Init. One load notices new libraries: `newest` is the
// last known entry of the loader's list, kept from being unloaded, so a new library follows it.
#pragma once
#include <link.h>

#include <atomic>
#include <cstddef>
#include <memory>

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
bool is_device(const layout::Data& data);  // true if any of it is

// As layout::gather and scatter, for data of which some is device memory. The copies are complete when they return;
// false: the run-time has failed.
bool gather(void* to, const layout::Data& from, std::uint64_t position, std::uint64_t bytes);
bool scatter(const layout::Data& to, std::uint64_t position, const void* from, std::uint64_t bytes);

// A buffer in ordinary memory that replaces device data during a call.
class Stage {
 public:
  explicit Stage(const layout::Data& device) : device_(device), buffer_(new std::byte[device.bytes]) {}
  layout::Data data() const { return {buffer_.get(), device_.bytes, {}}; }
  bool fetch() { return devices::gather(buffer_.get(), device_, 0, device_.bytes); }
  bool store(std::uint64_t bytes) { return devices::scatter(device_, 0, buffer_.get(), bytes); }

 private:
  layout::Data device_;
  std::unique_ptr<std::byte[]> buffer_;
};

// Replaces `data` by a stage if it is device memory; `fetches`: copies its contents. nullptr: it is not. Throws
// team::Broken.
std::unique_ptr<Stage> stage_slowly(layout::Data& data, bool fetches);
inline std::unique_ptr<Stage> stage(layout::Data& data, bool fetches) {
  if (!possible()) [[likely]]
    return nullptr;
  return stage_slowly(data, fetches);
}

}  // namespace nearfield::mpi::devices
