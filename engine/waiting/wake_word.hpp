// A futex word, the only means by which a thread of Nearfield sleeps and is woken. It belongs to one sleeper, or to all
// threads that wait for one event. It lies in private or in shared memory.
//
//   sleeper                                        waker
//   seen = word (acquire)                          stores what is awaited (release)
//   publishes where it sleeps, in other words      loads those words: does anybody sleep?
//   looks once more; if in vain, sleeps while        word += 1 (release), futex wake
//     word == seen, for a bounded time
//   publishes that it is awake
//
// If one of the two has no fence between its store and its load, the waker may miss a sleeper, which then sleeps to the
// end of its time. These words say where threads sleep:
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
  // Returns the number of rings so far. A later ring ends a nap that is given this number.
  std::uint32_t seen() const { return rings_.load(std::memory_order_acquire); }  // SYNC: wake-word
  // Sleeps until any process rings the word, at most so many nanoseconds. Not at all if seen() is not `seen` any more.
  void nap(std::uint32_t seen, std::uint64_t nanoseconds) noexcept;
  // `publish(this)` tells wakers that we sleep on this word, publish(nullptr) that we are awake. `look()` looks once
  // more and returns for how many nanoseconds to sleep, 0: not at all.
  template <class Publish, class Look>
  void sleep(Publish publish, Look look) {
    const std::uint32_t before = seen();
    publish(this);
    if (const std::uint64_t nanoseconds = look()) nap(before, nanoseconds);
    publish(nullptr);
  }
  // Wakes all threads that sleep on the word. Async-signal-safe.
  void wake() noexcept;

 private:
  Atomic<std::uint32_t> rings_{};
};

}  // namespace nearfield::waiting
