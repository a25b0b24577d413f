// Models of the further tracks of a team, which the next operation uses while others still read; planned ones that are
// started again. The members run engine/track; scripts are those of operations.hpp.
#include <gtest/gtest.h>

#include "tests/engine/model/operations.hpp"

namespace nearfield::testing {
namespace {

using team::Track;

constexpr Options language(int preemptions) { return {.memory = Memory::language, .preemptions = preemptions}; }
void from_first(Track& track, int me, std::uint64_t number) { by_root(track, me, number, 0); }

TEST(Tracks, SlotsAreUsedAgainWhenTheyHaveBeenRead) {
  Members two({.count = 2});
  // The first member has used all slots of both tracks and is to use two again: one is free.
  const Play play{from_first,
                  {"i16 i17 w17", "i1 i2 i3 w3 w1"},
                  {"i0 i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12 i13 i14 i15 w15", "i0 w0"}};
  EXPECT_GOOD(explore_play(two, play, language(3)));
}

TEST(Planned, AreStartedAgainWhileOthersStillRead) {
  Members two({.count = 2});
  const Play play{from_first,
                  {"s0 w0 s0 w0", "s0 w0 s0 w0 s0 w0"},
                  {"p0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0 s0 w0", "p0 s0 w0"}};
  EXPECT_GOOD(explore_play(two, play, language(3)));
}

}  // namespace
}  // namespace nearfield::testing
