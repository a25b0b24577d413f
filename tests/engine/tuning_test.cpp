// What all who try rows share: rankings, agreements, the back-off, classes of lengths.
#include <gtest/gtest.h>

#include <string>

#include "engine/tuning/agreement.hpp"
#include "engine/tuning/back_off.hpp"
#include "engine/tuning/lengths.hpp"
#include "engine/tuning/ranking.hpp"

namespace nearfield::tuning {
namespace {

struct Named {
  char name;
};
constexpr Named a{'a'}, b{'b'}, c{'c'}, d{'d'};
using Rows = std::vector<Ranked<Named>>;

std::string names(const std::vector<const Named*>& rows) {
  std::string text;
  for (const Named* each : rows) text += each->name;
  return text;
}

TEST(Ranking, CheapRowsComeFirstAndThoseNearThemAreTried) {
  using enum Standing;
  Rows rows{{&a, allowed, 14}, {&b, allowed, 10}, {&c, allowed, 16}, {&d, excluded, 1}};
  EXPECT_EQ(names(rank(rows, 1.5, 4)), "ba");
  EXPECT_EQ(rows[0].row, &b);
  EXPECT_EQ(names(rank(rows, 1.5, 1)), "b");
}

TEST(Ranking, WhatIsForcedIsTriedWhateverItCosts) {
  using enum Standing;
  Rows rows{{&a, allowed, 1}, {&b, forced, 100, Ranked<Named>::never}, {&c, forced, 10}};
  EXPECT_EQ(names(rank(rows, 1.5, 4)), "cb");
}

TEST(Ranking, SomeAreTriedAlwaysAndSomeNever) {
  using enum Standing;
  Rows rows{{&a, allowed, 10}, {&b, allowed, 10, Ranked<Named>::never}, {&c, allowed, 99, Ranked<Named>::always}};
  EXPECT_EQ(names(rank(rows, 1.5, 4)), "ac");
  Rows none{{&a, excluded, 10}};
  EXPECT_EQ(names(rank(none, 1.5, 4)), "");
}

// Two members, the second of which comes late and leaves early.
TEST(Agreement, ACallTakesFromTheLastEntryToTheLastLeaving) {
  constexpr Moment moments[2][3] = {{{0, 10}, {20, 50}, {60, 90}}, {{5, 8}, {30, 45}, {70, 95}}};
  const auto at = [&](int r, std::size_t i) { return moments[r][i]; };
  const Agreed each = of_all(2, 3, Timing::each, at);
  EXPECT_EQ(each.times, (std::vector<float>{20, 25}));
  EXPECT_EQ(each.between, (22 + 25) / 2.0f);
  const Agreed together = of_all(2, 3, Timing::together, at);
  EXPECT_EQ(together.times, (std::vector<float>{25}));  // the first: 30 to 50, 60 to 90
  const Agreed sharing = of_all(2, 3, Timing::from_first_to_last, at);
  EXPECT_EQ(sharing.times, (std::vector<float>{37.5}));  // 20 to 95
  EXPECT_EQ(sharing.between, 0);
}

TEST(Agreement, AloneAllCallsCount) {
  const Moment moments[] = {{0, 10}, {30, 60}};
  const Agreed agreed = of_one(moments);
  EXPECT_EQ(agreed.times, (std::vector<float>{10, 30}));
  EXPECT_EQ(agreed.between, 20);
}

TEST(BackOff, DoublesUpToALimit) {
  Skips skips;
  const auto skipped = [&] {
    unsigned calls = 0;
    while (skips.skip()) ++calls;
    return calls;
  };
  EXPECT_EQ(skipped(), 0u);
  for (const unsigned calls : {2u, 4u, 8u, 16u, 32u, 64u, 64u, 64u}) {
    skips.failed();
    EXPECT_EQ(skipped(), calls);
  }
  skips.worked();
  skips.failed();
  EXPECT_EQ(skipped(), 2u);
  BackOff pause;
  for (int i = 0; i < 200; ++i) EXPECT_GE(pause.lengthen(1000, std::uint64_t{1} << 62), 1000u);
}

TEST(Lengths, AClassEndsAtAPowerOfTwo) {
  EXPECT_EQ(size_class(0), 0u);
  EXPECT_EQ(size_class(1), 0u);
  EXPECT_EQ(size_class(2), 1u);
  EXPECT_EQ(size_class(4096), 12u);
  EXPECT_EQ(size_class(4097), 13u);
  ByLength<int, 12, 3> cells;
  cells[100] = 1, cells[8192] = 2, cells[1 << 20] = 3;
  EXPECT_EQ(cells[4096], 1);
  EXPECT_EQ(cells[4097], 2);
  EXPECT_EQ(cells[8193], 3);
}

}  // namespace
}  // namespace nearfield::tuning
