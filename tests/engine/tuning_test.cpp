// What all who try rows share: rankings, agreements, classes of lengths.
#include <gtest/gtest.h>

#include <string>

#include "engine/tuning/lengths.hpp"
#include "engine/tuning/ranking.hpp"
#include "engine/tuning/selector.hpp"

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
TEST(Agreement, CountsTheLastMemberToComeOrTheOneThatIsKeptLongest) {
  const Round seen[] = {{{40, 10}, {20, 10}}, {{15, 25}, {30, 20}}};
  const auto member = [&](std::size_t i) { return seen[i]; };
  const auto is = [](const Block& block, float inside, float between) {
    EXPECT_EQ(block.inside, inside);
    EXPECT_EQ(block.between, between);
  };
  const Round least = of_all(2, TimeInside::least, member), most = of_all(2, TimeInside::most, member);
  is(least.incumbent, 15, 35);
  is(least.challenger, 20, 30);
  is(most.incumbent, 40, 10);
  is(most.challenger, 30, 20);
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
