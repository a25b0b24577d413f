// Measured choices: of made-up times, and of real algorithms.
#include "engine/tuning/selector.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/choosing/chooser.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::tuning {
namespace {

using collectives::Call;
using collectives::Collective;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

// ns of a row's calls, and of what lies between them.
struct Made {
  double inside, between = 0;
};

// Makes calls of a cell until it is settled, or so many. `call(row, number)`: what that one takes.
template <class Call>
unsigned make_calls(Selector& selector, Call call, unsigned most = 100'000, bool until_settled = true) {
  std::uint64_t now = 1'000'000;
  unsigned made = 0;
  while (made < most && !(until_settled && selector.settled())) {
    const bool timed = ++made == selector.event();
    const Made takes = call(timed ? selector.current() : selector.incumbent(), made);
    const std::uint64_t entered = now += std::uint64_t(takes.between);
    now += std::uint64_t(takes.inside);
    if (timed) selector.over(made, true, {entered, now}, [](const Round& mine) { return mine; });
  }
  return made;
}

Selector of(std::size_t rows, unsigned calls = 2) { return {std::vector<float>(rows), calls}; }

// With noise and outliers.
unsigned choose_among(const std::vector<double>& times, unsigned seed) {
  Selector selector = of(times.size());
  std::mt19937 random{seed};
  std::normal_distribution<double> noise(1, 0.05);
  make_calls(selector,
             [&](unsigned row, unsigned) { return Made{times[row] * noise(random) * (random() % 12 ? 1 : 20)}; });
  return selector.incumbent();
}

TEST(Selector, FindsTheFastestDespiteOutliers) {
  int right = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    right += choose_among({1000, 800, 1500, 4000}, seed) == 1;
    right += choose_among({5e6, 6e6, 3e6}, seed) == 2;
  }
  EXPECT_GE(right, 380);
}

TEST(Selector, GivesEachRowItsTrialWhicheverWins) {
  for (unsigned fastest = 0; fastest < 4; ++fastest) {
    Selector selector = of(4);
    make_calls(selector, [&](unsigned row, unsigned) { return Made{row == fastest ? 1000.0 : 1500.0 + row}; });
    for (unsigned row = 0; row < 4; ++row) EXPECT_GT(selector.nanoseconds(row), 0) << row << " of " << fastest;
    EXPECT_EQ(selector.incumbent(), fastest);
  }
}

TEST(Selector, KeepsTheEstimatesChoiceAmongEquals) {
  int kept = 0;
  for (unsigned seed = 0; seed < 100; ++seed) kept += choose_among({1000, 1000, 1000}, seed) == 0;
  EXPECT_GE(kept, 70);
}

// What is clearly slower runs in two blocks of a trial, and trials are a small part of all calls.
TEST(Selector, TriesTheSlowSeldom) {
  Selector selector = of(3);
  unsigned slow = 0;
  const unsigned made = make_calls(
      selector,
      [&](unsigned row, unsigned) {
        slow += row != 0;
        return Made{row ? 9000.0 : 1000.0};
      },
      100'000, false);
  EXPECT_EQ(made, 100'000u);
  EXPECT_LE(slow, 1000u);
  EXPECT_EQ(selector.incumbent(), 0u);
  EXPECT_NEAR(double(selector.nanoseconds(1)), 9000, 1);
}

// One row is faster inside a call, but what it leaves behind costs more between calls than it saves; where the program
// works between calls, the machine's figures tell that.
TEST(Selector, SeesWhatACallLeavesBehind) {
  for (const double left_behind : {0.0, 600.0})
    for (const double own_work : {0.0, 1000.0, 50'000.0}) {
      Selector selector({float(left_behind), 0}, 2);
      std::mt19937 random{7};
      std::normal_distribution<double> noise(1, 0.01);
      make_calls(selector, [&](unsigned row, unsigned made) {
        const double phase = made % 97 == 0 ? 1e6 : 0;  // another one of the program
        return Made{(row ? 800 : 500) * noise(random), (row ? 0 : left_behind) + own_work * noise(random) + phase};
      });
      EXPECT_EQ(selector.incumbent(), left_behind > 0 ? 1u : 0u) << left_behind << " " << own_work;
    }
}

// The program's own work varies more than rows do: it must not decide.
TEST(Selector, IsNotMisledByTheProgramsWork) {
  int right = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Selector selector = of(2);
    std::mt19937 random{seed};
    make_calls(selector, [&](unsigned row, unsigned) {
      const double work = seed % 2 ? double(random() % 40'000) : random() % 3 == 0 ? 1e6 : 300;
      return Made{row ? 800.0 : 500.0, work};
    });
    right += selector.incumbent() == 0;
  }
  EXPECT_GE(right, 99);
}

TEST(Selector, NoticesWhatHasChanged) {
  Selector selector = of(3);
  bool moved = false;
  const auto call = [&](unsigned row, unsigned) { return Made{moved == (row == 2) ? 1000.0 : 3000.0}; };
  make_calls(selector, call, 20'000, false);
  EXPECT_NE(selector.incumbent(), 2u);
  moved = true;
  Selector after = selector;
  std::uint64_t now = 1'000'000, number = 20'000;
  for (int i = 0; i < 40'000; ++i) {
    const bool timed = ++number == after.event();
    const Made takes = call(timed ? after.current() : after.incumbent(), 0);
    const std::uint64_t entered = now;
    now += std::uint64_t(takes.inside);
    if (timed) after.over(number, true, {entered, now}, [](const Round& mine) { return mine; });
  }
  EXPECT_EQ(after.incumbent(), 2u);
}

TEST(Selector, WhatCannotRunLosesItsTrial) {
  Selector selector = of(2);
  std::uint64_t number = 0;
  while (!selector.settled() && number < 1000) {
    if (++number != selector.event()) continue;
    const bool ran = selector.current() == 0;
    selector.over(number, ran, {number * 10, number * 10 + 5}, [](const Round& mine) { return mine; });
  }
  EXPECT_TRUE(selector.settled());
  EXPECT_EQ(selector.incumbent(), 0u);
  EXPECT_EQ(selector.nanoseconds(1), 0);
  EXPECT_EQ(selector.nanoseconds(0), 5) << "it ran, and nothing can say that it was out of reach";
}

// A block ends where there are enough calls, however many of them are at once; the first ones do not count.
TEST(Selector, BlocksCountCallsThatAreAtOnce) {
  Selector selector({0, 0}, 32, 1);
  const auto over = [&](std::uint64_t number, std::uint64_t entered, std::uint64_t left) {
    selector.over(number, true, {entered, left}, [](const Round& mine) { return mine; }, 64);
  };
  EXPECT_FALSE(selector.in_block());
  over(1, 0, 1);
  EXPECT_TRUE(selector.in_block());
  over(2, 2, 3);
  EXPECT_FALSE(selector.in_block());
  EXPECT_EQ(selector.current(), 1u);
}

// Allgathers of few lengths, while everything is tried: results are right, and all members choose the same.
bool try_everything(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto created = creation::create_team(process, rank, size, bootstrap);
  if (!created) return false;
  choosing::Chooser chooser;
  chooser.serve(**created);
  chooser.override_with("allgather:slots,rounds,pull-rotated,push-rotated");
  std::mt19937 own{unsigned(rank)};
  constexpr std::size_t lengths[] = {8, 1000, 1900, 70000};
  constexpr int calls = 6000;
  const auto at = *process.arena().allocate(std::size_t(size + 1) * 70000, 64);
  std::byte* const mapped = process.segment().base() + at;
  std::vector<std::byte> of_ones_own(std::size_t(size + 1) * 70000);
  for (int i = 0; i < calls; ++i) {
    const std::size_t n = i % 40 ? lengths[i % 3] : lengths[3];
    // Sometimes out of reach, on some member.
    std::byte* const send = (i / 7 + rank) % 5 ? mapped : of_ones_own.data();
    std::byte* const recv = send + n;
    std::memset(send, rank + i, n);
    const Call call{Collective::allgather, n, send, recv};
    // From the middle on one member is late.
    if (i > calls / 2 && rank == size - 1) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (own() % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
    if (!chooser.perform((*created)->context(), call)) return false;
    for (int r = 0; r < size; ++r)
      if (recv[std::size_t(r) * n] != std::byte(r + i) || recv[std::size_t(r + 1) * n - 1] != std::byte(r + i))
        return false;
  }
  bool same = true;
  unsigned measured = 0;
  for (const std::size_t n : {8, 1000}) {
    const Selector& selector = *chooser.selector_of(Collective::allgather, n);
    same &= selector.settled();
    measured += unsigned(selector.calls());
    char name[32] = {}, names[testing::most_processes][32];
    std::snprintf(name, sizeof name, "%u", selector.incumbent());
    bootstrap.allgather(name, names, sizeof name);
    for (int r = 0; r < size; ++r) same &= !std::strcmp(names[r], names[0]);
  }
  Team::close(std::move(*created));
  return same && measured > 1000;
}

// Buffers that are in reach at times: what a member skips all skip.
bool come_into_reach(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto created = creation::create_team(process, rank, size, bootstrap);
  if (!created) return false;
  choosing::Chooser chooser;
  chooser.serve(**created);
  constexpr std::size_t count = 20000;
  const auto at = *process.arena().allocate(2 * count * 4, 64);
  auto* const mapped = reinterpret_cast<std::uint32_t*>(process.segment().base() + at);
  std::vector<std::uint32_t> of_ones_own(2 * count);
  const auto fold = reducing::fold(reducing::Op::sum, reducing::Type::u32);
  for (int i = 0; i < 1500; ++i) {
    // In reach until all is decided, then in stretches.
    std::uint32_t* const send = i < 300 || i / 40 % 3 == 0 ? mapped : of_ones_own.data();
    std::uint32_t* const recv = send + count;
    for (std::size_t k = 0; k < count; k += 61) send[k] = std::uint32_t(rank + i + int(k));
    Call call{Collective::allreduce, count * 4, send, recv};
    call.count = count;
    call.type = reducing::Type::u32;
    call.fold = fold;
    if (!chooser.perform((*created)->context(), call)) return false;
    for (std::size_t k = 0; k < count; k += 61)
      if (recv[k] != std::uint32_t(size * (size - 1) / 2 + size * (i + int(k)))) return false;
  }
  Team::close(std::move(*created));
  return true;
}

constexpr Pace quick{.first = 2, .rounds = 1, .rest = 1};

class Processes : public ::testing::TestWithParam<int> {};
TEST_P(Processes, SkipTogether) {
  const testing::Pacing pacing(quick);
  EXPECT_EQ(0, run_members(GetParam(), 60, come_into_reach));
}

TEST_P(Processes, AgreeAndGoOnTrying) {
  const testing::Pacing pacing({.first = 2, .rounds = 3, .rest = 1});
  EXPECT_EQ(0, run_members(GetParam(), 120, try_everything));
}
INSTANTIATE_TEST_SUITE_P(Selector, Processes, ::testing::Values(2, 3, 5));

// Members that share CPUs tell little by a call or two of theirs.
TEST(Choosing, BlocksAreLongWhereMembersShareCpus) {
  for (const int size : {2, 5}) {
    EXPECT_EQ(0, run_members(size, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int members) {
                auto created = creation::create_team(process, rank, members, bootstrap);
                if (!created) return false;
                choosing::Chooser chooser;
                chooser.serve(**created);
                chooser.override_with("allgather:slots,rounds");
                std::byte send[8] = {}, recv[8 * 5];
                const Call call{Collective::allgather, sizeof send, send, recv};
                unsigned calls = 0, most = 0;
                for (int i = 0; i < 500; ++i) {
                  if (!chooser.perform((*created)->context(), call)) return false;
                  const Selector* const selector = chooser.selector_of(Collective::allgather, sizeof send);
                  calls = selector && selector->in_block() ? calls + 1 : 0;  // the last one of a block ends it
                  most = std::max(most, calls);
                }
                const bool share = (*created)->shape().oversubscribed();
                return most == (share ? 16u : 8u);
              }));
  }
}

// A length to which the cell's choice does not apply takes one that does, also where buffers are out of reach.
TEST(Choosing, EveryLengthOfAClassGetsWhatApplies) {
  EXPECT_EQ(
      0, run_members(3, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
        auto created = creation::create_team(process, rank, size, bootstrap);
        if (!created) return false;
        choosing::Chooser chooser;
        chooser.serve(**created);
        chooser.override_with("alltoall:pull-rotated");
        std::vector<std::uint32_t> send(3 * 500), recv(3 * 500);
        for (int i = 0; i < 400; ++i) {
          const std::size_t count = i % 2 ? 500 : 257;  // 3 blocks fit a slot, or do not
          for (std::size_t k = 0; k < 3 * count; ++k) send[k] = std::uint32_t(rank * 100000 + i * 7 + int(k));
          if (!chooser.perform((*created)->context(), {Collective::alltoall, count * 4, send.data(), recv.data()}))
            return false;
          for (std::size_t k = 0; k < 3 * count; ++k)
            if (recv[k] != std::uint32_t(int(k / count) * 100000 + i * 7 + int(k % count) + rank * int(count)))
              return false;
        }
        return true;
      }));
}

}  // namespace
}  // namespace nearfield::tuning
