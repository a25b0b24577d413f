// The vector kernels against the plain ones, bit by bit, for every operator, type and instruction set of this CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/reducing/fold.hpp"
#include "engine/reducing/halves.hpp"
#include "engine/reducing/wide.hpp"

namespace nearfield::reducing {
namespace {

std::vector<std::byte> random_bytes(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> data(bytes);
  for (auto& b : data) b = std::byte(engine());
  return data;
}

void compare(Op op, Type type, FoldFn tested, std::size_t count, std::size_t nin, std::size_t nout, int in_place,
             std::size_t shift) {
  const std::size_t bytes = count * size_of(type);
  std::vector<std::vector<std::byte>> inputs, outputs(nout, std::vector<std::byte>(bytes + shift + 8, std::byte{0x5a}));
  for (std::size_t k = 0; k < nin; ++k) inputs.push_back(random_bytes(bytes + shift, std::uint32_t(k * 7 + count)));
  std::vector<std::byte> expected(bytes);
  std::vector<const void*> in;
  for (auto& i : inputs) in.push_back(i.data() + shift);
  void* reference[1] = {expected.data()};
  plain_fold(op, type)(reference, 1, in.data(), nin, count);
  std::vector<void*> out;
  for (auto& o : outputs) out.push_back(o.data() + shift);
  if (in_place >= 0) out[0] = inputs[std::size_t(in_place)].data() + shift;
  tested(out.data(), nout, in.data(), nin, count);
  for (std::size_t o = 0; o < nout; ++o) {
    ASSERT_TRUE(bytes == 0 || std::memcmp(out[o], expected.data(), bytes) == 0)
        << name(op) << " " << name(type) << " count " << count << " inputs " << nin << " outputs " << nout << " output "
        << o;
    if (o > 0 || in_place < 0) {
      ASSERT_EQ(outputs[o][shift + bytes], std::byte{0x5a}) << "written past the end";
    }
  }
}

TEST(Fold, VectorKernelsEqualPlainOnes) {
  // Every instruction set that this CPU has.
  for (unsigned skip = 0; skip == 0 || simd_fold(Op::sum, Type::f64, skip); ++skip) {
    int compared = 0;
    for (unsigned o = 0; o < unsigned(Op::count); ++o) {
      for (unsigned t = 0; t < unsigned(Type::count); ++t) {
        const FoldFn simd = simd_fold(Op(o), Type(t), skip);
        if (!simd || !plain_fold(Op(o), Type(t))) continue;
        ++compared;
        for (const std::size_t count : {0, 1, 7, 8, 17, 63, 64, 300, 1025})
          for (const std::size_t nin : {1, 2, 3, 8, 12})
            for (const std::size_t nout : {1, 3})
              for (int in_place = -1; in_place < int(nin); in_place += 3)
                compare(Op(o), Type(t), simd, count, nin, nout, in_place, count % 4);
      }
    }
    EXPECT_GT(compared, 50);
  }
}

// Into the first operand and another array at once. Some elements overflow, are infinite or no number.
template <class T>
void expect_one_rounding(Op op, Type type, unsigned skip, std::size_t count, std::size_t inputs) {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  special[] = {infinity, -infinity, 60000, 1e-7f, std::numeric_limits<float>::quiet_NaN()};
  std::vector<std::vector<T>> given(inputs, std::vector<T>(count));
  std::mt19937 engine(std::uint32_t(count + inputs));
  for (auto& each : given)
    for (T& element : each)
      element = narrowed<T>(engine() % 16 ? float(int(engine() % 2000)) / 64 - 15 : special[engine() % 5]);
  std::vector<T> expected(count), got[] = {given[0], std::vector<T>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    float value = float(given[0][i]);
    for (std::size_t k = 1; k < inputs; ++k)
      value = op == Op::sum ? value + float(given[k][i]) : value * float(given[k][i]);
    expected[i] = narrowed<T>(value);
  }
  std::vector<const void*> in;
  for (const auto& each : given) in.push_back(in.empty() ? got[0].data() : each.data());
  void* out[] = {got[0].data(), got[1].data()};
  wide_fold(op, type, skip)(out, 2, in.data(), inputs, count);
  for (const auto& each : got)
    for (std::size_t i = 0; i < count; ++i) {
      const bool both = std::isnan(float(expected[i])) && std::isnan(float(each[i]));  // of any sign
      ASSERT_TRUE(both || std::memcmp(&each[i], &expected[i], sizeof(T)) == 0)
          << name(type) << ", " << i << " of " << count;
    }
}

TEST(WideFold, RoundsOnceByEveryInstructionSet) {
  for (unsigned skip = 0; skip == 0 || wide_fold(Op::sum, Type::bf16, skip); ++skip)
    for (const Op op : {Op::sum, Op::prod})
      for (const std::size_t count : {1, 17, 511, 513, 2000})
        for (const std::size_t inputs : {1, 2, 3, 9}) {
          expect_one_rounding<Bfloat16>(op, Type::bf16, skip, count, inputs);
          expect_one_rounding<Float16>(op, Type::f16, skip, count, inputs);
        }
}

TEST(Fold, TakesOperandsFromLeftToRight) {
  const double a = 1e16, b = -1e16, c = 1;
  const void* in[] = {&a, &c, &b};
  double out = 0;
  void* outs[] = {&out};
  fold(Op::sum, Type::f64)(outs, 1, in, 3, 1);
  EXPECT_EQ(out, (a + c) + b);
}

TEST(Fold, PairsKeepTheLowestIndexOfEqualValues) {
  struct Pair {
    double value;
    int index;
  };
  const Pair a{2, 7}, b{2, 3}, c{5, 0};
  const void* in[] = {&a, &b, &c};
  Pair out{};
  void* outs[] = {&out};
  fold(Op::minloc, Type::f64_i32)(outs, 1, in, 3, 1);
  EXPECT_EQ(out.index, 3);
  fold(Op::maxloc, Type::f64_i32)(outs, 1, in, 3, 1);
  EXPECT_EQ(out.index, 0);
}

TEST(Fold, IsDefinedAsTheStandardSays) {
  EXPECT_EQ(fold(Op::band, Type::f64), nullptr);
  EXPECT_EQ(fold(Op::max, Type::c64), nullptr);
  EXPECT_EQ(fold(Op::sum, Type::boolean), nullptr);
  EXPECT_EQ(fold(Op::sum, Type::byte), nullptr);
  EXPECT_EQ(fold(Op::minloc, Type::f64), nullptr);
  EXPECT_EQ(fold(Op::sum, Type::f64_i32), nullptr);
  EXPECT_EQ(fold(Op::sum, Type::character), nullptr);
  EXPECT_NE(fold(Op::bxor, Type::byte), nullptr);
  EXPECT_NE(fold(Op::land, Type::logical4), nullptr);
  EXPECT_NE(fold(Op::prod, Type::c80), nullptr);
}

}  // namespace
}  // namespace nearfield::reducing
