// The shared heap as the engine sees it: libnearfield-heap.so, found at run time where it is loaded (heap/heap.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/result.hpp"
#include "heap/heap.h"

namespace nearfield::reach {

class SharedHeap {
 public:
  // nullptr where the library is not loaded or is switched off. One per process.
  static const SharedHeap* find();

  struct View {
    std::byte* base = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;          // bytes from the base below which all blocks lie
    std::uint64_t generation = 0;  // 0: there is no region
  };
  View current() const;
  // Whether this process's allocations come from it, now or from the first one on.
  bool serves() const { return serves_() != 0; }
  nearfield_heap_statistics statistics() const;
  // A descriptor of the region of that generation, which the caller closes; -1 where a fork has retired it.
  int descriptor(std::uint64_t generation) const { return descriptor_(generation); }
  // Whether `address` lies in the current region. Once a fork has begun its snapshot, the answer is no.
  bool contains(const void* address) const { return contains_(address) != 0; }
  // Peers read or write these bytes, which are in one block.
  void use(const void* address, std::size_t bytes) const {
    if (bytes >= worth_noting) use_(address, bytes);
  }
  // Where its pages lie from now on (heap/heap.h).
  Result<void> place(const nearfield_heap_placement& placement) const;
  // The host allocates for itself: meanwhile nothing new is served (heap/heap.h). Without a heap nothing happens.
  class Pause {
   public:
    Pause() : heap_(find()) {
      if (heap_) heap_->pause_(1);
    }
    ~Pause() {
      if (heap_) heap_->pause_(-1);
    }
    Pause(const Pause&) = delete;

   private:
    const SharedHeap* heap_;
  };
  // `visit` is called in the process that forks, before the snapshot: it tells which bytes peers may be writing now.
  using Keep = void (*)(const void* begin, std::size_t bytes, void* context);
  void on_fork(void (*visit)(Keep keep, void* context)) const { on_fork_(visit); }

 private:
  static constexpr std::size_t worth_noting = 1 << 20;
  SharedHeap() = default;
  int (*current_)(void* view) = nullptr;
  int (*serves_)() = nullptr;
  void (*stats_)(nearfield_heap_statistics*) = nullptr;
  int (*place_)(const nearfield_heap_placement*) = nullptr;
  void (*pause_)(int) = nullptr;
  int (*descriptor_)(std::uint64_t) = nullptr;
  int (*contains_)(const void*) = nullptr;
  void (*use_)(const void*, std::size_t) = nullptr;
  void (*on_fork_)(void (*)(Keep, void*)) = nullptr;
};

}  // namespace nearfield::reach
