// A model of the wake word, under the ways by which sleepers tell that they sleep on it.
#include <gtest/gtest.h>

#include <memory>

#include "engine/waiting/wake_word.hpp"
#include "tests/engine/model/explore.hpp"

namespace nearfield::testing {
namespace {

using waiting::WakeWord;

WakeWord word;
Atomic<std::uint32_t> done, asleep;

// Process 0 sleeps until all others have done their part. `fences`: both sides tell and look by sequentially consistent
// accesses, as the progress thread and who wakes it; otherwise by a store and a load, as waits of contexts. Who finds
// it asleep takes that out where there are fences, and rings.
Explored explore_sleep(int count, bool fences, Options options = {}) {
  const auto order = fences ? std::memory_order_seq_cst : std::memory_order_release;
  const auto sleep = [=] {
    bool there = false;
    while (!there)
      word.sleep([&](WakeWord* where) { asleep.store(where != nullptr, order); },
                 [&]() -> std::uint64_t {
                   there = done.load(fences ? std::memory_order_seq_cst : std::memory_order_acquire) + 1 ==
                           std::uint32_t(count);
                   return there ? 0 : 1;
                 });
  };
  const auto wake = [=] {
    if (!fences) {
      done.store(1, order);
      if (asleep.load(std::memory_order_relaxed)) word.wake();
    } else {
      done.fetch_add(1, order);
      if (asleep.exchange(0, order)) word.wake();
    }
  };
  return explore(
      count,
      [=] {
        std::construct_at(&word);
        done.store(0);
        asleep.store(0);
        return [=](int me) { me == 0 ? sleep() : wake(); };
      },
      options);
}

TEST(WakeWord, WithFencesNoWakeIsMissed) {
  for (const int count : {2, 3}) {
    const Explored explored = explore_sleep(count, true);
    EXPECT_GOOD(explored);
    EXPECT_EQ(explored.naps, 0) << count;
  }
}

TEST(WakeWord, WithoutFencesAMissedWakeCostsOneNap) {
  const Explored explored = explore_sleep(2, false);
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 1);
  EXPECT_EQ(explore_sleep(2, false, {.store_buffers = false}).naps, 0);
}

TEST(WakeWord, TheModelNotices) {
  EXPECT_GT(explore_sleep(2, true, {.mutation = {.no_wakes = true}}).naps, 0);
  EXPECT_GT(explore_sleep(3, true, {.mutation = {.split_updates = true}}).naps, 0);  // one ring is lost
}

}  // namespace
}  // namespace nearfield::testing
