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
  const std::uint64_t seq = context.slots.next();
  const std::byte* const slot = context.slots.wait(0, seq);
  context.slots.consume(seq);
  require(get(slot) == given(0, number), "a slot of another operation");
}

void expect_reuse(Play play) {
  Members two({.count = 2});
  EXPECT_GOOD(explore_play(two, play, language(3)));
  play.operate = too_early;
  EXPECT_FALSE(explore_play(two, play, language(3)).good());
}

// Issues operations [from, to), and waits for the last one.
std::string issued(unsigned from, unsigned to) {
  std::string script;
  for (unsigned i = from; i < to; ++i) script += "i" + std::to_string(i) + " ";
  return script + "w" + std::to_string(to - 1);
}

TEST(ContextPool, SlotsAreUsedAgainWhenTheyHaveBeenRead) {
  // The first member has used all slots of both contexts and is to use two again: one is free.
  constexpr unsigned all = 2 * context::Slots::entries;
  expect_reuse({from_first, {issued(all, all + 2), "i1 i2 i3 w3 w1"}, {issued(0, all), "i0 w0"}});
}

TEST(PersistentTask, AreStartedAgainWhileOthersStillRead) {
  std::string all = "p0";
  for (unsigned i = 0; i < context::Slots::entries; ++i) all += " s0 w0";
  expect_reuse({from_first, {"s0 w0 s0 w0", "s0 w0 s0 w0 s0 w0"}, {all, "p0 s0 w0"}});
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
