// Models of suspended bodies: what goes on where a member waits for something else, sleeps, or looks now and then; who
// rings whom. The members run engine/fibers/runner.hpp and engine/waiting; scripts are those of operations.hpp.
#include <gtest/gtest.h>

#include "tests/engine/model/operations.hpp"

namespace nearfield::testing {
namespace {

using context::CollectiveContext;

// Memory without store buffers: no wake is missed there (engine/waiting/wait.hpp).
constexpr Options in_order(int preemptions, Mutation mutation = {}) {
  return {.store_buffers = false, .preemptions = preemptions, .mutation = mutation};
}

// Two meetings, so that a body that has gone on is suspended again.
void two_meetings(CollectiveContext& context, int me, std::uint64_t number) {
  by_slots(context, me, number);
  by_slots(context, me, number);
}

// Each member waits in another call for the other's body to go on.
TEST(Suspended, BodiesGoOnInWhateverElseIsWaitedFor) {
  Members two({.count = 2, .sleeps = true});
  const Play play{two_meetings, {"i0 b2 w0", "i0 w0 b2"}, {"i9 i10 w9 w10"}};
  const Explored explored = explore_play(two, play, in_order(2));
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0);
  EXPECT_GT(explore_play(two, play, in_order(2, {.no_wakes = true})).naps, 0);
}

// Both sleep until operations of theirs are complete, which they wait for in another order.
TEST(Suspended, WhoSleepsIsRungByWhoDoesWhatItsBodiesAwait) {
  Members two({.count = 2, .sleeps = true, .messages = true});
  const Play play{by_slots, {"i0 i1 m1 m0", "i0 m0 i1 m1"}, {"i9 i10 w9 w10"}};
  const Explored explored = explore_play(two, play, in_order(1));
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0);
  EXPECT_GT(explore_play(two, play, in_order(1, {.no_wakes = true})).naps, 0);
}

// PersistentTask ones, started in another order at each member, which sleeps until each is complete.
TEST(Suspended, PlannedOnesAreRungForInAnyOrder) {
  Members two({.count = 2, .sleeps = true, .messages = true});
  const Play play{by_slots, {"s0 s1 m0 m1", "s1 s0 m1 m0"}, {"p0 p1"}};
  const Explored explored = explore_play(two, play, in_order(2));
  EXPECT_GOOD(explored);
  EXPECT_EQ(explored.naps, 0);
  EXPECT_GT(explore_play(two, play, in_order(2, {.no_wakes = true})).naps, 0);
}

}  // namespace
}  // namespace nearfield::testing
