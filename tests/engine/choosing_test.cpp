// What the model chooses, also where the cores of a machine move apart; which calls do not ask for buffers.
#include "engine/choosing/choose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/choosing/skips.hpp"

namespace nearfield::choosing {
namespace {

using collectives::Algorithm, collectives::Call, collectives::Collective;

// As measured on virtual CPUs of a Zen 4 that share a last-level cache, or do not.
constexpr PairCosts near_state{.line = 54, .own = 0.018, .copy = 0.022, .left = 0.12, .fill = 0.027, .empty = 0.024},
    far_state{.line = 203, .own = 0.018, .copy = 0.055, .left = 0.54, .fill = 0.039, .empty = 0.058};

// Of members on two CPUs; `states`: those that are known, `now`: the one that the members are in.
team::Shape members(int size, std::vector<PairCosts> states, const PairCosts& now) {
  Machine machine;
  machine.cache = 32 << 20;
  machine.own = 1 << 20;
  machine.cpus = 2;
  machine.near_pair = states.at(0);
  if (states.size() > 1) machine.far_pair = states[1];
  team::Shape shape = team::shape_for(size, machine);
  shape.machine.near_pair = now;
  shape.machine.far_pair = {};
  shape.machine.line = now.line;
  return shape;
}
team::Shape two(std::vector<PairCosts> states, const PairCosts& now) { return members(2, std::move(states), now); }

const Algorithm& row(Collective collective, std::string_view name) {
  return *std::ranges::find(collectives::algorithms(collective), name, &Algorithm::name);
}
bool has_staged(const std::vector<const Algorithm*>& rows) {
  return std::ranges::any_of(rows, [](const Algorithm* each) { return each->reach == collectives::staged; });
}

constexpr Call megabyte{Collective::allreduce, 1 << 20};

TEST(Choosing, LinesStayInALastLevelCacheThatIsNotShared) {
  const Algorithm& direct = row(Collective::allreduce, "direct");
  EXPECT_EQ(left_behind(two({near_state, far_state}, near_state), direct, megabyte), 0);
  const team::Shape apart = two({near_state, far_state}, far_state);
  EXPECT_NEAR(left_behind(apart, direct, megabyte), far_state.left * direct.taken * (1 << 19), 1);
  EXPECT_EQ(choose(apart, "", megabyte).best->reach, collectives::staged);
  // Where no quicker state is known the cores share their last-level cache.
  EXPECT_EQ(left_behind(two({far_state}, far_state), direct, megabyte), 0);
  // What does not fit there either has left it.
  EXPECT_EQ(left_behind(apart, direct, {Collective::allreduce, 32 << 20}), 0);
}

TEST(Choosing, RowsOfOtherStatesAreTriedAsWell) {
  constexpr Call bcast{Collective::bcast, 1 << 20};
  const Chosen both = choose(two({near_state, far_state}, near_state), "", bcast);
  EXPECT_NE(both.best->reach, collectives::staged);
  EXPECT_TRUE(has_staged(both.promising));
  const Chosen one = choose(two({near_state}, near_state), "", bcast);
  EXPECT_FALSE(has_staged(one.promising));
  EXPECT_EQ(one.best, both.best);
  // What the user has forced is all there is.
  const Chosen forced = choose(two({near_state, far_state}, near_state), "bcast:direct", bcast);
  EXPECT_EQ(forced.promising, std::vector{&row(Collective::bcast, "direct")});
}

TEST(Choosing, OrdersDoNotKeepOutWhatGoesAnotherWay) {
  const Chosen chosen = choose(members(8, {near_state}, near_state), "", {Collective::alltoall, 16 << 10});
  EXPECT_NE(chosen.best->reach, collectives::staged);
  EXPECT_EQ(chosen.promising.size(), candidates);
  EXPECT_TRUE(has_staged(chosen.promising));
}

// Members of several caches stay where they are: the other state is that of further members.
TEST(Choosing, MembersOfSeveralCachesDoNotMove) {
  team::Shape shape = two({near_state, far_state}, near_state);
  shape.machine.far_pair = far_state;
  shape.machine.near = near_state.line;
  shape.machine.line = far_state.line;
  shape.size = 4;
  shape.group = 2;
  const std::vector<const Algorithm*> rows = choose(shape, "", megabyte).promising;
  shape.states[2] = {.line = 900, .own = 0.018, .copy = 5, .left = 9, .fill = 0.01, .empty = 0.01};
  EXPECT_EQ(choose(shape, "", megabyte).promising, rows);
}

TEST(Skips, DoubleUpToALimit) {
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
}

}  // namespace
}  // namespace nearfield::choosing
