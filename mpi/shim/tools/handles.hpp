// Our handles and those of the host are both pointers. Ours are addresses of slots that are reused but never
// deallocated, so that a freed handle is recognised and not mistaken for one of the host. Thread-safe.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace nearfield::mpi::tools {

enum class Whose : std::uint8_t { hosts, freed, ours };

template <class Handle, class Object>
class Handles {
 public:
  struct Found {
    Whose whose = Whose::hosts;
    Object object{};
  };

  // Raises std::bad_alloc.
  Handle make(const Object& object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      auto slot = std::make_unique<Slot>();
      free_.reserve(slots_.size() + 1);  // so that release() needs no memory
      Slot* const at = slot.get();
      slots_.emplace(at, std::move(slot));
      free_.push_back(at);
    }
    Slot* const slot = free_.back();
    free_.pop_back();
    *slot = {object, true};
    return reinterpret_cast<Handle>(slot);
  }

  Found find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto at = slots_.find(handle);
    if (at == slots_.end()) return {};
    return {at->second->used ? Whose::ours : Whose::freed, at->second->object};
  }

  void release(Handle handle) {
    release_all([&](const Slot* slot) { return slot == reinterpret_cast<const Slot*>(handle); });
  }
  // Releases all handles for whose object `which` returns true.
  template <class Which>
  void release_of(Which which) {
    release_all([&](const Slot* slot) { return which(slot->object); });
  }

 private:
  struct Slot {
    Object object{};
    bool used = false;
  };
  template <class Which>
  void release_all(Which which) {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, slot] : slots_)
      if (slot->used && which(slot.get())) {
        slot->used = false;
        free_.push_back(slot.get());
      }
  }

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
};

}  // namespace nearfield::mpi::tools
