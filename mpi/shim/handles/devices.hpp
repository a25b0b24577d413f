// Memory of accelerators, which GPU-aware hosts accept in every call and no CPU instruction can read.
//
// Only the rank itself knows what its pointers are, so such a call cannot go to the host: its partner may hold the data
// in ordinary memory and take part here. Device memory is copied to or from a buffer in ordinary memory by the run-time
// that it belongs to (CUDA or HIP, found where it is loaded, never linked), and the call goes on with that buffer.
// Memory that the CPU can access (managed, pinned) is used as it is.
//
// A run-time may be loaded at any time, as a rule long after MPI_Init. What the loader has added is seen by one load:
// `newest` is the last entry of its list of libraries, kept from being unloaded, and something follows it.
#pragma once
#include <link.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "engine/layout/layout.hpp"

namespace nearfield::mpi::devices {

extern std::atomic<const link_map*> newest;
extern std::atomic<bool> loaded;  // a run-time
void look_again();

// Whether any pointer may be a device's.
inline bool possible() {
  const link_map* const last = newest.load(std::memory_order_acquire);  // pairs with look_again
  if (!last || last->l_next) [[unlikely]]
    look_again();
  return loaded.load(std::memory_order_relaxed);
}

bool is_device(const void* address);
bool is_device(const layout::Data& data);  // any of it

// Bytes [position, position + bytes) of data of which some lies on a device, as layout::gather and scatter. Done when
// they return; false: the run-time refused.
bool gather(void* to, const layout::Data& from, std::uint64_t position, std::uint64_t bytes);
bool scatter(const layout::Data& to, std::uint64_t position, const void* from, std::uint64_t bytes);

// Stands for data of a device while a call is under way.
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

// Puts a stage in the place of `data` where that lies on a device; `fetches`: with its contents. nullptr: it does not.
// Throws team::Broken.
std::unique_ptr<Stage> stage_slowly(layout::Data& data, bool fetches);
inline std::unique_ptr<Stage> stage(layout::Data& data, bool fetches) {
  if (!possible()) [[likely]]
    return nullptr;
  return stage_slowly(data, fetches);
}

}  // namespace nearfield::mpi::devices
