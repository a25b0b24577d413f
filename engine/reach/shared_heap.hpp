// Interface to libnearfield-heap.so (heap/heap.h), whose functions are looked up at run time.
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
  // Returns whether this process's allocations come from it, now or from the first one on.
  bool serves() const { return serves_() != 0; }
  nearfield_heap_statistics statistics() const;
  // Returns a descriptor of the region of that generation, which the caller closes; -1 where a fork has retired it.
  int descriptor(std::uint64_t generation) const { return descriptor_(generation); }
  // Returns whether all of the `bytes` > 0 bytes lie in the current region, and the program has mapped nothing else
  // over them; false once a fork has begun its snapshot.
  bool contains(const void* address, std::size_t bytes) const { return contains_(address, bytes) != 0; }
  // Counts that peers read or write these bytes of one block.
  void use(const void* address, std::size_t bytes) const {
    if (bytes >= worth_noting) use_(address, bytes);
  }
  // Sets the NUMA nodes of its pages from now on (heap/heap.h).
  Result<void> place(const nearfield_heap_placement& placement) const;
  // While it lives, the heap serves no new allocation, so that the host's own come from elsewhere.
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
  // `visit` is called in the process that forks, before the snapshot, and passes `keep` the bytes that peers may be
  // writing now.
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
  int (*contains_)(const void*, std::size_t) = nullptr;
  void (*use_)(const void*, std::size_t) = nullptr;
  void (*on_fork_)(void (*)(Keep, void*)) = nullptr;
};

}  // namespace nearfield::reach
