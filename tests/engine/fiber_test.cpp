// Switches of stacks: what a call keeps in registers, a switch keeps.
#include "engine/fibers/fiber.hpp"

#include <gtest/gtest.h>

namespace nearfield::fibers {
namespace {

constexpr int turns = 5;

// Twelve values that all are needed behind each call of `turn`: as many as fit lie in the registers that it keeps.
template <class Value>
[[gnu::noinline]] Value mixed(Value seed, void (*turn)(void*), void* context) {
  Value a = seed, b = a + 1, c = b + 1, d = c + 1, e = d + 1, f = e + 1;
  Value g = f + 1, h = g + 1, i = h + 1, j = i + 1, k = j + 1, l = k + 1;
  for (int n = 0; n < turns; ++n) {
    turn(context);
    a += b, b += c, c += d, d += e, e += f, f += g, g += h, h += i, i += j, j += k, k += l, l += a;
  }
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}

template <class Value>
struct Body {
  Fiber fiber;
  Value result = 0;
};

template <class Value>
void expect_kept() {
  auto nothing = [](void*) {};
  Body<Value> body;
  body.fiber.start(
      [](void* context) {
        auto& self = *static_cast<Body<Value>*>(context);
        self.result = mixed<Value>(700, [](void* c) { static_cast<Body<Value>*>(c)->fiber.suspend(); }, context);
      },
      &body);
  const Value ours = mixed<Value>(3, [](void* c) { static_cast<Body<Value>*>(c)->fiber.resume(); }, &body);
  EXPECT_TRUE(body.fiber.ended());
  EXPECT_EQ(ours, mixed<Value>(3, nothing, nullptr));
  EXPECT_EQ(body.result, mixed<Value>(700, nothing, nullptr));
}

TEST(Fiber, KeepsIntegersOfBothSides) { expect_kept<long>(); }
TEST(Fiber, KeepsFloatsOfBothSides) { expect_kept<double>(); }

}  // namespace
}  // namespace nearfield::fibers
