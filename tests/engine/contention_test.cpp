// The detector of contention, by a clock and a kernel of the test's own.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "engine/base/clock.hpp"
#include "engine/waiting/contention.hpp"

namespace nearfield::waiting {
namespace {

constexpr std::uint64_t us = 1000, ms = 1000 * us, second = 1000 * ms;

std::uint64_t delay = 0, questions = 0;
std::uint64_t ask() {
  ++questions;
  return delay;
}

struct ContentionTest : ::testing::Test {
  ContentionTest() {
    delay = 7 * second;    // before MPI_Init
    contention.look(now);  // the first question of a thread has no answer
    questions = 0;
  }
  // A spin is interrupted for so long, or a wait lasts; for `wanted` of it the thread wanted a CPU and had none.
  bool gap(std::uint64_t took, std::uint64_t wanted) {
    delay += wanted;
    return contention.after_gap(now += took, took);
  }
  bool wait(std::uint64_t took, std::uint64_t wanted) {
    delay += wanted;
    return contention.look(now += took);
  }
  std::uint64_t now = 5 * second;
  Contention contention{ask};
};

TEST_F(ContentionTest, InterruptsAreNone) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(gap(400 * us, 0)) << "a hypervisor's, which the kernel does not see";
    EXPECT_FALSE(wait(2 * ms, 40 * us)) << "a thread of the kernel's";
    EXPECT_FALSE(wait(second, 20 * ms)) << "now and then in a second";
  }
  EXPECT_EQ(contention.begun(), 0u);
}

TEST_F(ContentionTest, WhoeverHasTheCpuInstead) {
  EXPECT_TRUE(gap(3 * ms, 3 * ms)) << "it computes";
  EXPECT_FALSE(wait(second, 0));
  EXPECT_TRUE(wait(5 * ms, 2 * ms)) << "it waits as well, and a spin was never interrupted for long";
}

TEST_F(ContentionTest, WhatTheKernelDoesNotTellIsNone) {
  const auto unknown = [] { return std::uint64_t{0}; };
  Contention deaf{unknown};
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(deaf.look(now += 2 * ms));
}

TEST_F(ContentionTest, AsksSeldom) {
  for (const std::uint64_t end = now + second; now < end; now += 100 * us) contention.look(now);
  EXPECT_LE(questions, second / Contention::between_questions);
  questions = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(contention.after_gap(now += 100, 100));
  EXPECT_EQ(questions, 0u) << "waits that end within their spin do not ask";
}

// On a CPU of its own a sleeper is delayed by what the CPU takes to come to itself.
TEST_F(ContentionTest, SleepersAreWokenLateWithoutContentionToo) {
  for (int i = 0; i < 1000; ++i) {
    for (int sleep = 0; sleep < 10; ++sleep) contention.has_slept();
    EXPECT_FALSE(wait(2 * ms, 10 * 50 * us));
  }
  contention.has_slept();
  EXPECT_TRUE(wait(6 * ms, 3 * ms)) << "but not as late as others make it";
}

TEST_F(ContentionTest, EndsSoonWhenNobodyTakesTheCpu) {
  EXPECT_TRUE(gap(3 * ms, 3 * ms));
  for (const std::uint64_t end = now + 2 * Contention::first_hold; now < end; now += 100 * us) contention.look(now);
  EXPECT_FALSE(contention.there(now));
}

TEST_F(ContentionTest, LastsAsLongAsSomebodyDoes) {
  EXPECT_TRUE(gap(3 * ms, 3 * ms));
  for (const std::uint64_t end = now + second; now < end;) ASSERT_TRUE(wait(2 * ms, 200 * us));
}

// Their delays are their own: what one of them has waited is no growth of the other's.
TEST_F(ContentionTest, ThreadsThatTakeTurnsAreNotComparedWithEachOther) {
  delay += 3 * second;
  std::thread([&] { EXPECT_FALSE(contention.look(now += 2 * ms)); }).join();
  EXPECT_EQ(contention.begun(), 0u);
}

TEST_F(ContentionTest, TellsWhenItBeginsAndEndsAndCountsBoth) {
  static int begun, ended;
  begun = ended = 0;
  Contention heard{ask, [](bool begins, const Contention&, std::uint64_t) { ++(begins ? begun : ended); }};
  heard.look(now);
  EXPECT_FALSE(heard.any_since(0));
  std::uint64_t lasted = 0;
  for (int i = 1; i <= 3; ++i) {
    heard.look(now += 2 * second);  // forgotten
    const std::uint64_t begin = now += 5 * ms;
    delay += 3 * ms;
    EXPECT_TRUE(heard.after_gap(now, 3 * ms));
    delay += 300 * us;
    EXPECT_TRUE(heard.after_gap(now, 300 * us));
    EXPECT_TRUE(heard.any_since(now + second)) << "it goes on";
    EXPECT_EQ(heard.lasted(now + ms), lasted + ms);
    EXPECT_FALSE(heard.there(now += Contention::first_hold));
    EXPECT_FALSE(heard.there(now));
    lasted += Contention::first_hold;
    EXPECT_EQ(heard.lasted(now + second), lasted);
    EXPECT_TRUE(heard.any_since(begin));
    EXPECT_FALSE(heard.any_since(now + ms));
    EXPECT_EQ(heard.begun(), std::uint64_t(i));
    EXPECT_EQ(begun, i);
    EXPECT_EQ(ended, i);
  }
}

// A neighbour that wants the CPU for ever, and is never seen but when this rank spins: it costs 3 ms each time that
// contention is left.
TEST_F(ContentionTest, IsTriedLessAndLessOften) {
  const std::uint64_t begin = now;
  std::uint64_t lost = 0;
  while (now < begin + 10 * second) {
    if (!contention.there(now)) {
      gap(3 * ms, 3 * ms);
      lost += 3 * ms;
    }
    now += 100 * us;
    contention.look(now);
  }
  EXPECT_LT(double(lost) / 1e10, 0.02);
  // And as soon as ever once there has been none for a while.
  now += 3 * second;
  EXPECT_FALSE(contention.there(now));
  contention.look(now += 2 * second);
  EXPECT_TRUE(gap(3 * ms, 3 * ms));
  now += Contention::first_hold + us;
  EXPECT_FALSE(contention.there(now));
}

// The kernel's own word: two threads that spin on one CPU.
TEST(ContentionOfTheKernel, SaysWhoWantedACpu) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  if (delay_of_this_thread() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (delay_of_this_thread() == 0) GTEST_SKIP() << "this kernel does not tell";
  }
  std::atomic<bool> end{false};
  std::thread other([&] {
    while (!end.load(std::memory_order_relaxed)) {
    }
  });
  Contention contention{delay_of_this_thread};
  bool noticed = false;
  for (const std::uint64_t late = nanoseconds() + 20 * second; !noticed && nanoseconds() < late;)
    noticed = contention.look(nanoseconds());
  end = true;
  other.join();
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(noticed);
}

}  // namespace
}  // namespace nearfield::waiting
