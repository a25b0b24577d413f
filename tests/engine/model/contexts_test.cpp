// Models of the further contexts of a team, which the next operation uses while others still read; planned ones that
// are started again. The members run engine/context; scripts are those of operations.hpp.
#include <gtest/gtest.h>

#include "tests/engine/model/operations.hpp"

namespace nearfield::testing {
namespace {

using context::CollectiveContext;

constexpr Options language(int preemptions, Mutation mutation = {}) {
  return {.memory = Memory::language, .preemptions = preemptions, .mutation = mutation};
}
void from_first(CollectiveContext& context, int me, std::uint64_t number) { by_root(context, me, number, 0); }
// Readers give the slot back before they have read it.
void too_early(CollectiveContext& context, int me, std::uint64_t number) {
  if (me == 0) return from_first(context, me, number);
  const std::uint64_t seq = context.next_slot();
  const std::byte* const slot = context.wait_slot(0, seq);
  context.finish_rooted_slot(seq);
  require(get(slot) == given(0, number), "a slot of another operation");
}

void expect_reuse(Play play) {
  Members two({.count = 2});
  EXPECT_GOOD(explore_play(two, play, language(3)));
  play.operate = too_early;
  EXPECT_FALSE(explore_play(two, play, language(3)).good());
}

TEST(ContextPool, SlotsAreUsedAgainWhenTheyHaveBeenRead) {
  // The first member has used all slots of both contexts and is to use two again: one is free.
  expect_reuse({from_first,
                {"i16 i17 w17", "i1 i2 i3 w3 w1"},
                {"i0 i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12 i13 i14 i15 w15", "i0 w0"}});
}

TEST(PersistentTask, AreStartedAgainWhileOthersStillRead) {
  expect_reuse({from_first,
                {"s0 w0 s0 w0", "s0 w0 s0 w0 s0 w0"},
                {"p0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0", "p0 s0 w0"}});
}

// Both at the same time.
void expect_publication(const Play& play) {
  Members two({.count = 2});
  EXPECT_GOOD(explore_play(two, play, language(3)));
  EXPECT_FALSE(explore_play(two, play, language(3, {.no_release = true})).good());
  EXPECT_FALSE(explore_play(two, play, language(3, {.no_acquire = true})).good());
}

TEST(ContextPool, WhatOthersReadIsPublished) { expect_publication({from_first, {"i0 i1 w1 w0"}}); }

TEST(PersistentTask, WhatOthersReadIsPublished) { expect_publication({from_first, {"s0 w0 s0 w0"}, {"p0 s0 w0"}}); }

}  // namespace
}  // namespace nearfield::testing
