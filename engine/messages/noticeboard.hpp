// Buffers that peers may be reading or writing now, for a fork in another thread to find (heap/fork.cpp). The handler
// holds the heap's lock, so it must take no other: slots are only added, and hold an address that counts while its
// length is not zero.
#pragma once
#include <atomic>
#include <cstddef>

namespace nearfield::messages {

class Noticeboard {
 public:
  struct Slot {
    std::atomic<std::size_t> bytes{0};
    std::atomic<void*> address{nullptr};
  };

  // Under the caller's lock.
  Slot* note(void* address, std::size_t bytes) {
    for (Chunk* chunk = &first_;;) {
      for (Slot& slot : chunk->slots) {
        if (slot.bytes.load(std::memory_order_relaxed)) continue;
        slot.address.store(address, std::memory_order_relaxed);
        slot.bytes.store(bytes, std::memory_order_seq_cst);  // pairs with the fence in front of the heap's visit
        return &slot;
      }
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      if (!next) chunk->next.store(next = new Chunk, std::memory_order_release);  // pairs with visit
      chunk = next;
    }
  }
  static void clear(Slot*& slot) {
    if (slot) slot->bytes.store(0, std::memory_order_release);
    slot = nullptr;
  }
  template <class Visit>
  void visit(Visit visit) const {
    for (const Chunk* chunk = &first_; chunk; chunk = chunk->next.load(std::memory_order_acquire))
      for (const Slot& slot : chunk->slots)
        if (const std::size_t bytes = slot.bytes.load(std::memory_order_relaxed))
          visit(slot.address.load(std::memory_order_relaxed), bytes);
  }

 private:
  struct Chunk {
    Slot slots[64];
    std::atomic<Chunk*> next{nullptr};
  };
  Chunk first_;
};

}  // namespace nearfield::messages
