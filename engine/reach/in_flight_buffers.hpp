// Buffers that peers may be reading or writing now; a fork reads them (heap/fork.cpp). The fork may be in another
// thread, or in a signal handler that has interrupted anything, so it takes no lock and does not wait: slots are only
// added, and a slot is valid while its length is not zero.
#pragma once
#include <atomic>
#include <cstddef>
#include <mutex>

namespace nearfield::reach {

class InFlightBuffers {
 public:
  class Slot {
   public:
    // Only the slot's owner calls it. 0 bytes: the slot is empty.
    void store(const void* at, std::size_t length) {
      bytes_.store(0, std::memory_order_relaxed);
      address_.store(at, std::memory_order_relaxed);
      bytes_.store(length, std::memory_order_seq_cst);  // SYNC: noted; and with the fence in front of visit
    }
    void clear() { bytes_.store(0, std::memory_order_release); }  // SYNC: noted

   private:
    friend class InFlightBuffers;
    std::atomic<std::size_t> bytes_{0};
    std::atomic<const void*> address_{nullptr};
    Slot* next_free_ = nullptr;
  };

  Slot* take() {
    const std::lock_guard lock(mutex_);
    if (!free_) add_chunk();
    Slot* const slot = free_;
    free_ = slot->next_free_;
    return slot;
  }
  void put_back(Slot*& slot) {
    if (!slot) return;
    slot->clear();
    const std::lock_guard lock(mutex_);
    slot->next_free_ = free_;
    free_ = slot;
    slot = nullptr;
  }
  Slot* note(const void* address, std::size_t bytes) {
    Slot* const slot = take();
    slot->store(address, bytes);
    return slot;
  }
  template <class Visit>
  void visit(Visit visit) const {
    for (const Chunk* chunk = chunks_.load(std::memory_order_acquire); chunk; chunk = chunk->next)  // SYNC: chunks
      for (const Slot& slot : chunk->slots)
        if (const std::size_t bytes = slot.bytes_.load(std::memory_order_acquire))  // SYNC: noted
          visit(slot.address_.load(std::memory_order_relaxed), bytes);
  }
  ~InFlightBuffers() {
    for (const Chunk* chunk = chunks_; chunk;) {
      const Chunk* const next = chunk->next;
      delete chunk;
      chunk = next;
    }
  }

 private:
  struct Chunk {
    Slot slots[64];
    Chunk* next = nullptr;
  };
  void add_chunk() {
    auto* const chunk = new Chunk;
    for (Slot& slot : chunk->slots) {
      slot.next_free_ = free_;
      free_ = &slot;
    }
    chunk->next = chunks_.load(std::memory_order_relaxed);
    chunks_.store(chunk, std::memory_order_release);  // SYNC: chunks
  }
  std::mutex mutex_;  // guards the free slots; visit() does not take it
  Slot* free_ = nullptr;
  std::atomic<Chunk*> chunks_{nullptr};
};

}  // namespace nearfield::reach
