// The explorer's own memory, by the litmus tests of the literature: what the language allows is found, what it forbids
// is not.
#include <gtest/gtest.h>

#include "tests/engine/model/explore.hpp"

namespace nearfield::testing {
namespace {

constexpr auto relaxed = std::memory_order_relaxed, acquire = std::memory_order_acquire,
               release = std::memory_order_release, acq_rel = std::memory_order_acq_rel,
               seq_cst = std::memory_order_seq_cst;

Atomic<std::uint64_t> x, y, seen[4];

Explored explore_words(int count, const std::function<void(int)>& body, Memory memory = Memory::language,
                       Mutation mutation = {}) {
  return explore(count,
                 [&] {
                   for (auto* each : {&x, &y, &seen[0], &seen[1], &seen[2], &seen[3]}) each->store(0);
                   return body;
                 },
                 {.memory = memory, .mutation = mutation});
}

// Data, then a flag; flag, then data.
Explored pass(std::memory_order stores, std::memory_order loads, Memory memory = Memory::language,
              Mutation mutation = {}) {
  return explore_words(
      2,
      [=](int me) {
        if (me == 0) {
          put(&x, 7);
          y.store(1, stores);
        } else {
          while (!y.load(loads)) pause_process();
          require(get(&x) == 7, "the flag came before the data");
        }
      },
      memory, mutation);
}

TEST(Language, AMessageNeedsReleaseAndAcquire) {
  EXPECT_TRUE(pass(release, acquire).good());
  EXPECT_TRUE(pass(seq_cst, seq_cst).good());
  EXPECT_FALSE(pass(relaxed, acquire).good());
  EXPECT_FALSE(pass(release, relaxed).good());
  EXPECT_FALSE(pass(release, acquire, Memory::language, {.no_release = true}).good());
  EXPECT_FALSE(pass(release, acquire, Memory::language, {.no_acquire = true}).good());
  EXPECT_TRUE(pass(relaxed, relaxed, Memory::x86).good());  // which is why x86 alone shows nothing of it
}

// Each stores its word and looks at the other's.
bool both_miss(std::memory_order stores, std::memory_order loads) {
  return !explore_words(2, [=](int me) {
            (me ? y : x).store(1, stores);
            const auto found = (me ? x : y).load(loads);
            if (found == 0 && seen[0].fetch_add(1, seq_cst) == 1) require(false, "both");
          }).good();
}

TEST(Language, OnlySequentiallyConsistentStoresAreSeenBeforeLoads) {
  EXPECT_TRUE(both_miss(relaxed, relaxed));
  EXPECT_TRUE(both_miss(release, acquire));
  EXPECT_FALSE(both_miss(seq_cst, seq_cst));
}

// A word is never read backwards, whatever the order.
TEST(Language, AWordGoesForward) {
  EXPECT_TRUE(explore_words(2, [](int me) {
                if (me == 0) {
                  x.store(1, relaxed);
                  x.store(2, relaxed);
                } else {
                  const auto first = x.load(relaxed), second = x.load(relaxed);
                  require(second >= first, "backwards");
                }
              }).good());
}

// What is learnt is passed on; and a read-modify-write in between, even a relaxed one, carries what it has found.
TEST(Language, WhatIsLearntIsPassedOn) {
  auto pass_on = [](std::memory_order between) {
    return explore_words(3, [=](int me) {
      if (me == 0) {
        put(&x, 7);
        y.store(1, release);
      } else if (me == 1) {
        while (y.load(between) != 1) pause_process();
        seen[0].store(1, release);
      } else {
        while (!seen[0].load(acquire)) pause_process();
        require(get(&x) == 7, "not passed on");
      }
    });
  };
  EXPECT_TRUE(pass_on(acquire).good());
  EXPECT_FALSE(pass_on(relaxed).good());
  EXPECT_TRUE(explore_words(3, [](int me) {
                if (me == 0) {
                  put(&x, 7);
                  y.store(1, release);
                } else if (me == 1) {
                  y.fetch_add(1, relaxed);
                } else if (y.load(acquire) == 2) {
                  require(get(&x) == 7, "a release is lost");
                }
              }).good());
}

// Two readers may see two writers in different orders; not so sequentially consistent ones.
TEST(Language, ReadersAgreeOnlyWhereAllIsSequentiallyConsistent) {
  auto disagree = [](std::memory_order stores, std::memory_order loads) {
    return !explore_words(4, [=](int me) {
              if (me < 2) return (me ? y : x).store(1, stores);
              const auto first = (me == 2 ? x : y).load(loads), second = (me == 2 ? y : x).load(loads);
              if (first == 1 && second == 0 && seen[0].fetch_add(1, acq_rel) == 1) require(false, "they disagree");
            }).good();
  };
  EXPECT_TRUE(disagree(release, acquire));
  EXPECT_FALSE(disagree(seq_cst, seq_cst));
}

}  // namespace
}  // namespace nearfield::testing
