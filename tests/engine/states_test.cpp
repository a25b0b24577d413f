// Which lines are of one state of the machine.
#include "engine/machine/states.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace nearfield {
namespace {

// So many lines, evenly from one length to another.
std::vector<double> from_to(double low, double high, int count) {
  std::vector<double> lines;
  for (int i = 0; i < count; ++i) lines.push_back(low + (high - low) * i / std::max(count - 1, 1));
  return lines;
}

std::vector<double> all(std::initializer_list<std::vector<double>> parts) {
  std::vector<double> lines;
  for (const auto& part : parts) lines.insert(lines.end(), part.begin(), part.end());
  return lines;
}

// Medians, in any order of the lines.
std::vector<long> middles(std::vector<double> lines) {
  std::shuffle(lines.begin(), lines.end(), std::mt19937(7));
  std::vector<long> found;
  for (const MachineState& state : find_states(lines)) found.push_back(std::lround(state.middle));
  return found;
}

using Middles = std::vector<long>;

TEST(States, OfAMeshAreOne) {
  EXPECT_EQ(middles(from_to(97, 138, 42)).size(), 1u);
  EXPECT_EQ(middles({97, 138}).size(), 1u);  // the ends alone
  EXPECT_EQ(middles(all({from_to(97, 99, 50), from_to(136, 138, 50)})).size(), 1u);
  EXPECT_EQ(middles({100}), Middles{100});
  EXPECT_TRUE(find_states({}).empty());
}

TEST(States, OfChipletsAndSocketsAreApart) {
  const auto within = from_to(20, 30, 7), between = from_to(90, 110, 24), sockets = from_to(190, 230, 64);
  EXPECT_EQ(middles(all({within, between})), (Middles{25, 100}));
  EXPECT_EQ(middles(all({within, between, sockets})), (Middles{25, 100, 210}));
  EXPECT_EQ(middles(all({from_to(97, 138, 100), from_to(230, 260, 100)})).size(), 2u);  // two meshes
}

// A virtual machine whose CPUs move: 33 to 70 ns, or 200 to 215.
TEST(States, OfCpusThatMoveAreTwo) {
  const auto near = from_to(33, 70, 300), far = from_to(200, 215, 120);
  const auto found = find_states(all({near, far}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].lines, 300u);
  EXPECT_GT(found[0].border, 70);
  EXPECT_LT(found[0].border, 200);
  EXPECT_TRUE(std::isinf(found[1].border));
  EXPECT_EQ(middles({50, 200}), (Middles{50, 200}));
  EXPECT_EQ(middles(all({near, {205}})).size(), 1u);                  // one block of 300 was disturbed
  EXPECT_EQ(middles(all({near, from_to(205, 210, 12)})).size(), 2u);  // they have moved for a dozen
}

TEST(States, AreNotJoinedByInterruptedLines) {
  const std::vector<double> strays = {80, 105, 120, 140, 165};
  EXPECT_EQ(find_states(all({from_to(45, 55, 200), strays, from_to(195, 210, 90)})).size(), 2u);
  EXPECT_EQ(find_states(all({from_to(45, 55, 200), {160, 400, 900}})).size(), 1u);
}

TEST(States, CoverAllLinesOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> lines;
    const int count = 1 + int(random() % 300);
    for (int i = 0; i < count; ++i) lines.push_back(std::exp(double(random() % 1000) / 150) + 5);
    std::size_t covered = 0;
    double border = 0;
    for (const MachineState& state : find_states(lines)) {
      EXPECT_LE(state.low, state.middle);
      EXPECT_LE(state.middle, state.high);
      EXPECT_GT(state.border, border);
      border = state.border;
      covered += state.lines;
    }
    EXPECT_EQ(covered, lines.size());
  }
}

}  // namespace
}  // namespace nearfield
