// The one wait policy: spin, then yield, then sleep.
//
// A process learns at start-up whether its CPUs are shared by more ranks than there are CPUs ("crowded"). Crowded
// ranks yield at once: a hand-off by yield costs about a microsecond, while a spinning rank burns the time slice
// that the awaited rank needs. Ranks with a CPU of their own spin for some microseconds first. After a bounded
// number of fruitless yields every rank sleeps on its bell (a futex word in its own member block), so that an idle
// rank's core is free.
//
//   sleeper                                   waker
//   awaits = whom                             stores its flag (release)
//   sleepers += 1                             sleepers != 0 ?
//   looks at the flag once more                 for each peer that awaits me: bell += 1, futex wake
//   futex wait on bell, bounded time
//   sleepers -= 1
//
// The waker issues no fence between its flag and its look at `sleepers`, since that would cost every call some
// nanoseconds for an event that is rare. A wake that is missed for that reason (the flag was still in the waker's
// store buffer) costs one bounded sleep, never a hang: every sleep has a time limit, because a sleeping rank also
// progresses the host MPI and looks for dead peers.
#pragma once
#include <immintrin.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "engine/atomic.hpp"

namespace nearfield::waiting {

// Nanoseconds that a rank sleeps at most while others may need it for something else.
inline constexpr std::uint64_t short_nap = 100'000;

struct Policy {
  bool crowded = false;  // more ranks than CPUs
  bool may_sleep = true;
  std::uint32_t spins = 4000;       // rounds of pause before the first yield
  std::uint32_t yields = 200;       // fruitless yields before the first sleep, which also waits for this time:
  std::uint64_t awake = 1'000'000;  // nanoseconds
  bool sleep_at_once = false;       // where everybody waits for one event
};

inline std::uint64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000u + t.tv_nsec;
}

// Sleeps while `word` is `seen`, at most `nanoseconds`; wakes of other processes count.
void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t nanoseconds) noexcept;
void futex_wake(Atomic<std::uint32_t>& word) noexcept;

// How long `pause` has to be repeated to fill `nanoseconds`, measured once.
std::uint32_t pauses_in(std::uint64_t nanoseconds) noexcept;

// What a wait does besides looking at its flag. `Host` must offer:
//   progress()              progresses the host MPI
//   before_sleep() / after_sleep()  announce and take back the sleep
//   bell()                  the futex word
//   longest_nap()           nanoseconds after which it must look around
//   one_event()             whether all who wait now wait for the same
//   inspect(elapsed_ns)     looks for dead peers and stalls; may throw
template <class Flag, class Host>
[[gnu::noinline]] void wait_slowly(const Policy& policy, Flag flag, Host&& host) {
  const std::uint64_t start = nanoseconds();
  std::uint64_t next_inspection = start + 20'000'000;
  if (!policy.crowded) {
    for (std::uint32_t i = 0; i < policy.spins; ++i) {
      _mm_pause();
      if (flag()) return;
      if ((i & 63) == 63) host.progress();
    }
  }
  for (std::uint32_t i = 0; !policy.sleep_at_once; ++i) {
    sched_yield();
    if (flag()) return;
    if ((i & 15) == 15) {
      host.progress();
      if (flag()) return;
    }
    if ((i & 31) == 31) {
      const std::uint64_t now = nanoseconds();
      if (now > next_inspection) {
        host.inspect(now - start);
        next_inspection = now + 50'000'000;
      }
    }
    if (policy.may_sleep && i >= policy.yields && (!policy.awake || nanoseconds() - start > policy.awake)) break;
  }
  // Whoever ends a wait for everybody does so by a read-modify-write, which is a fence: no wake is missed. (A short
  // sleep also programs a timer, which is a trap to the hypervisor on virtual machines.)
  std::uint64_t nap = host.one_event() ? 20'000'000 : 500'000;
  for (;;) {
    const std::uint32_t rung = host.bell().load(std::memory_order_acquire);
    host.before_sleep();
    if (flag()) {
      host.after_sleep();
      return;
    }
    futex_wait(host.bell(), rung, std::min(nap, host.longest_nap()));
    host.after_sleep();
    if (flag()) return;
    if (nap < 8'000'000) nap *= 2;
    host.progress();
    if (flag()) return;
    const std::uint64_t now = nanoseconds();
    if (now > next_inspection) {
      host.inspect(now - start);
      next_inspection = now + 50'000'000;
    }
  }
}

}  // namespace nearfield::waiting
