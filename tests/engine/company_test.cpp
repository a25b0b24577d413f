// The detector of company, by a clock and a kernel of the test's own.
#include <gtest/gtest.h>

#include "engine/waiting/company.hpp"

namespace nearfield::waiting {
namespace {

using Kind = Company::Kind;
constexpr std::uint64_t us = 1000, ms = 1000 * us, second = 1000 * ms;

std::uint64_t preemptions = 0;
std::uint64_t ask() { return preemptions; }

struct CompanyTest : ::testing::Test {
  CompanyTest() {
    preemptions = 7;
    company.after_gap(now, 60 * us);  // the first question of a thread has no answer
  }
  // The CPU is gone for so long while this rank spins, or yields; `taken`: the kernel counts it.
  Kind gap(std::uint64_t took, bool taken = true) {
    preemptions += taken;
    return company.after_gap(now += took, took);
  }
  Kind yield(std::uint64_t took) { return company.after_yield(now += took, took); }
  std::uint64_t now = 5 * second;
  Company company{ask};
};

TEST_F(CompanyTest, InterruptsAreNone) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(gap(400 * us, false), Kind::none);  // a hypervisor's, which the kernel does not see
    EXPECT_EQ(yield(1 * us), Kind::none);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(gap(40 * us), Kind::none);
  EXPECT_EQ(company.begun(), 0u);
}

TEST_F(CompanyTest, WhoWaitsItselfGivesTheCpuBackSoon) {
  EXPECT_EQ(gap(3 * ms), Kind::yielding);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(yield(20 * us), Kind::yielding);
}

TEST_F(CompanyTest, WhoComputesDoesNot) {
  EXPECT_EQ(yield(3 * ms), Kind::busy);
  EXPECT_EQ(gap(3 * ms), Kind::busy) << "it stays that";
}

TEST_F(CompanyTest, EndsSoonWhenNobodyTakesTheCpu) {
  EXPECT_EQ(yield(3 * ms), Kind::busy);
  for (const std::uint64_t end = now + 2 * Company::first_hold; now < end; now += 100 * us) company.look(now);
  EXPECT_EQ(company.kind(now), Kind::none);
}

TEST_F(CompanyTest, LastsAsLongAsSomebodyDoes) {
  EXPECT_EQ(yield(3 * ms), Kind::busy);
  for (const std::uint64_t end = now + second; now < end; now += 2 * ms) {
    ++preemptions;
    company.look(now);
    ASSERT_EQ(company.kind(now), Kind::busy);
  }
}

TEST_F(CompanyTest, TellsWhenItBeginsAndEndsAndCountsBoth) {
  static int begun, ended;
  begun = ended = 0;
  Company heard{ask, [](Kind kind, const Company&, std::uint64_t) { ++(kind == Kind::none ? ended : begun); }};
  EXPECT_FALSE(heard.any_since(0));
  std::uint64_t lasted = 0;
  for (int i = 1; i <= 3; ++i) {
    const std::uint64_t begin = now += 2 * second;  // forgotten
    EXPECT_EQ(heard.after_yield(now, 3 * ms), Kind::busy);
    EXPECT_EQ(heard.after_yield(now, 300 * us), Kind::busy);
    EXPECT_TRUE(heard.any_since(now + second)) << "it goes on";
    EXPECT_EQ(heard.lasted(now + ms), lasted + ms);
    EXPECT_EQ(heard.kind(now += Company::first_hold), Kind::none);
    EXPECT_EQ(heard.kind(now), Kind::none);
    lasted += Company::first_hold;
    EXPECT_EQ(heard.lasted(now + second), lasted);
    EXPECT_TRUE(heard.any_since(begin));
    EXPECT_FALSE(heard.any_since(now + ms));
    EXPECT_EQ(heard.begun(), std::uint64_t(i));
    EXPECT_EQ(begun, i);
    EXPECT_EQ(ended, i);
  }
}

// A neighbour that wants the CPU for ever, and is never seen but when this rank spins or yields: it costs 3 ms each
// time that company is left.
TEST_F(CompanyTest, IsTriedLessAndLessOften) {
  const std::uint64_t begin = now;
  std::uint64_t lost = 0;
  while (now < begin + 10 * second) {
    if (company.kind(now) == Kind::none) {
      yield(3 * ms);
      lost += 3 * ms;
    }
    now += 100 * us;
    company.look(now);
  }
  EXPECT_LT(double(lost) / 1e10, 0.02);
  // And as soon as ever once there has been none for a while.
  now += 3 * second;
  EXPECT_EQ(company.kind(now), Kind::none);
  now += 2 * second;
  EXPECT_EQ(yield(3 * ms), Kind::busy);
  now += Company::first_hold + us;
  EXPECT_EQ(company.kind(now), Kind::none);
}

}  // namespace
}  // namespace nearfield::waiting
