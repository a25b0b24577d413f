// Every order makes every copy exactly once, p of them by each member.
#include "engine/orders/orders.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace nearfield::orders {
namespace {

constexpr Order all[] = {Order::linear,     Order::rotated, Order::xored, Order::grouped,
                         Order::near_first, Order::tiled,   Order::morton};

struct Cell {
  int source, destination;
};

std::vector<Cell> walk(Order order, Direction direction, int p, int group, int me) {
  std::vector<Cell> cells;
  each_copy(order, direction, p, group, me, [&](int s, int d) { cells.push_back({s, d}); });
  return cells;
}

TEST(Orders, MakeEveryCopyOnce) {
  for (const Order order : all) {
    for (const Direction direction : {Direction::pull, Direction::push}) {
      for (int p = 1; p <= 70; ++p) {
        for (const int group : {1, 2, 3, 4, 8, p}) {
          if (group > p) continue;
          std::vector<int> made(std::size_t(p * p), 0);
          for (int me = 0; me < p; ++me) {
            const auto cells = walk(order, direction, p, group, me);
            ASSERT_EQ(cells.size(), std::size_t(p)) << names[int(order)] << " p " << p << " group " << group;
            for (const auto [s, d] : cells) {
              ASSERT_TRUE(s >= 0 && s < p && d >= 0 && d < p) << names[int(order)] << " p " << p;
              ++made[std::size_t(s * p + d)];
              if (!by_place(order)) {
                ASSERT_EQ(direction == Direction::pull ? d : s, me);
              }
            }
          }
          for (const int times : made) ASSERT_EQ(times, 1) << names[int(order)] << " p " << p << " group " << group;
        }
      }
    }
  }
}

// At any step the members of a rotated order are at partners of their own, so are the pairs of xored.
TEST(Orders, SpreadWhatTheyClaimToSpread) {
  for (const int p : {2, 4, 8, 16, 64}) {
    for (const Order order : {Order::rotated, Order::xored}) {
      for (int step = 0; step < p; ++step) {
        std::vector<int> visitors(std::size_t(p), 0);
        for (int me = 0; me < p; ++me)
          ++visitors[std::size_t(walk(order, Direction::pull, p, p, me)[std::size_t(step)].source)];
        for (const int n : visitors) EXPECT_EQ(n, 1) << names[int(order)] << " p " << p << " step " << step;
      }
    }
  }
}

TEST(Orders, NearFirstEndsTheOwnGroupBeforeOthers) {
  for (const int p : {8, 11, 16, 24}) {
    for (int me = 0; me < p; ++me) {
      const auto cells = walk(Order::near_first, Direction::pull, p, 4, me);
      const int mates = std::min(4, p - me / 4 * 4);
      for (int i = 0; i < p; ++i) EXPECT_EQ(cells[std::size_t(i)].source / 4 == me / 4, i < mates);
    }
  }
}

// A member of an order by place touches about 2 sqrt(p) buffers instead of p + 1.
TEST(Orders, ByPlaceTouchFewBuffers) {
  for (const Order order : {Order::tiled, Order::morton}) {
    for (int me = 0; me < 64; ++me) {
      std::vector<bool> touched(128);
      for (const auto [s, d] : walk(order, Direction::pull, 64, 64, me))
        touched[std::size_t(s)] = touched[64 + d] = true;
      EXPECT_LE(std::count(touched.begin(), touched.end(), true), 16) << names[int(order)] << " member " << me;
    }
  }
}

}  // namespace
}  // namespace nearfield::orders
