// A reader-writer lock by tickets: it is had in the order in which it is asked for, and readers that follow each other
// have it together (after Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors", PPoPP 1991).
//
//   exclusive   ticket = tickets++       waits until turn.write == ticket   holds   turn = {ticket + 1, ticket + 1}
//   shared      ticket = tickets++       waits until turn.read == ticket    turn.read++   holds   turn.write++
//
// How members wait, and wake each other, is theirs (Window::acquire, Window::ring_next). Zero bytes are a free lock.
#pragma once
#include <cstdint>

#include "engine/base/atomic.hpp"

namespace nearfield::windows {

// Whose turn it is: the writer's with ticket `write`, the reader's with ticket `read`. Both wrap.
struct Turn {
  std::uint32_t write = 0, read = 0;
  bool concerns(std::uint32_t ticket) const { return ticket == write || ticket == read; }
};

class Lock {
 public:
  // Publishes what the caller has stored before to whoever asks later.
  std::uint32_t ask() { return tickets_.fetch_add(1, std::memory_order_acq_rel); }
  bool admits(std::uint32_t ticket, bool exclusive) const {
    const Turn turn = of(turn_.load(std::memory_order_acquire));  // pairs with enter and leave
    return (exclusive ? turn.write : turn.read) == ticket;
  }
  // pre: a reader is admitted. From now on the next one is as well. Whose turn it is then.
  Turn enter() {
    return change([](Turn turn) { return Turn{turn.write, turn.read + 1}; });
  }
  // Whose turn it is then. `fences`: what follows is not done before, so that no sleeper is missed.
  Turn leave(bool exclusive, bool fences) {
    if (!exclusive) return change([](Turn turn) { return Turn{turn.write + 1, turn.read}; });
    // Nobody else changes it now.
    const std::uint32_t ticket = of(turn_.load(std::memory_order_relaxed)).write;
    const Turn next{ticket + 1, ticket + 1};
    if (fences) turn_.exchange(word_of(next), std::memory_order_seq_cst);
    else turn_.store(word_of(next), std::memory_order_release);  // pairs with admits
    return next;
  }

  Atomic<std::uint32_t> sleepers;  // members asleep for it; each its own

 private:
  static Turn of(std::uint64_t word) { return {std::uint32_t(word >> 32), std::uint32_t(word)}; }
  static std::uint64_t word_of(Turn turn) { return std::uint64_t(turn.write) << 32 | turn.read; }
  template <class Change>
  Turn change(Change becomes) {
    std::uint64_t seen = turn_.load(std::memory_order_relaxed);
    Turn next;
    do next = becomes(of(seen));
    while (!turn_.compare_exchange_weak(seen, word_of(next), std::memory_order_acq_rel, std::memory_order_relaxed));
    return next;
  }
  Atomic<std::uint32_t> tickets_;  // any member
  Atomic<std::uint64_t> turn_;     // any member
};

}  // namespace nearfield::windows
