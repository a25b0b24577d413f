// The one way to sleep and to be woken: a futex word, private or shared, of one sleeper or of all who wait for one
// event.
//
//   sleeper                                        waker
//   seen = word (acquire)                          what is awaited = done (release)
//   tells where it sleeps, by words of the caller  is told so?
//   looks once more, after which it sleeps while     word += 1 (release), futex wake
//     word == seen, for a bounded time
//   tells that it is awake
//
// Whether a wake can be missed depends on the words by which sleepers tell: where neither side has a fence between its
// store and its load the waker may miss a sleeper, which then sleeps to the end of its time. Who tells whom:
//
//   waits of contexts     MemberControlBlock::awaits, ContextGate::sleepers (context/waits.hpp)
//   suspended bodies      ProcessHeader::asleep_on and ContextControlBlock::awaits (fibers/runner.hpp)
//   waits for messages    MessageMailbox::asleep; `elsewhere` for peers that are blocked on us (messages/mailboxes.hpp)
//   waits in windows      WindowControlBlock::asleep, Lock::sleepers
//   the progress thread   ProgressThread::asleep_, beside those of messages and bodies (messages/progress_thread.hpp)
#pragma once
#include <cstdint>

#include "engine/base/atomic.hpp"

namespace nearfield::waiting {

class WakeWord {
 public:
  // Rings that come after it end a nap from it.
  std::uint32_t seen() const { return rings_.load(std::memory_order_acquire); }  // SYNC: wake-word
  // Until it is rung, at most so many nanoseconds. Wakes of other processes count.
  void nap(std::uint32_t seen, std::uint64_t nanoseconds) noexcept;
  // `publish(where)`: lets wakers know that we sleep on that word, nullptr: are awake. `look()`: how long to sleep
  // after all, in nanoseconds, 0: not at all.
  template <class Publish, class Look>
  void sleep(Publish publish, Look look) {
    const std::uint32_t before = seen();
    publish(this);
    if (const std::uint64_t nanoseconds = look()) nap(before, nanoseconds);
    publish(nullptr);
  }
  // All who sleep on it. Async-signal-safe.
  void wake() noexcept;

 private:
  Atomic<std::uint32_t> rings_{};
};

}  // namespace nearfield::waiting
