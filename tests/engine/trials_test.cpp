// Trials: of made-up times, and of real algorithms.
#include "engine/tuning/trials.hpp"

#include <gtest/gtest.h>

#include <array>
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

// Runs all trials of candidates that take these times, with noise and outliers. What was chosen.
std::size_t choose_among(const std::vector<double>& times, unsigned seed, unsigned* calls = nullptr) {
  Trials trials(times.size(), times[0], false);
  std::mt19937 random{seed};
  std::normal_distribution<double> noise(1, 0.05);
  unsigned made = 0;
  while (!trials.decided()) {
    const std::size_t now = trials.current().id;
    bool full = false;
    while (!full) {
      full = trials.note({0, 1});
      ++made;
    }
    std::vector<float> block;
    for (std::size_t i = 0; i < trials.moments().size(); ++i)
      block.push_back(float(times[now] * noise(random) * (random() % 12 ? 1 : 20)));
    trials.end_block({block});
  }
  if (calls) *calls = made;
  return trials.best().id;
}

TEST(Trials, FindTheFastestDespiteOutliers) {
  int right = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    right += choose_among({1000, 800, 1500, 4000}, seed) == 1;
    right += choose_among({5e6, 6e6, 3e6}, seed) == 2;
  }
  EXPECT_GE(right, 392);
}

TEST(Trials, KeepTheModelsChoiceAmongEquals) {
  int kept = 0;
  for (unsigned seed = 0; seed < 100; ++seed) kept += choose_among({1000, 1000, 1000}, seed) == 0;
  EXPECT_GE(kept, 70);
}

TEST(Trials, TryTheSlowOnce) {
  unsigned calls = 0;
  EXPECT_EQ(choose_among({1000, 9000, 9000, 9000, 9000, 9000}, 1, &calls), 0u);
  EXPECT_EQ(calls, 6u * 3);
}

// One is faster in the call, but what it leaves behind costs more between calls than it saves.
TEST(Trials, SeeWhatACallLeavesBehind) {
  for (const double left_behind : {0.0, 600.0}) {
    for (const float own_work : {0.0f, 5000.0f}) {
      Trials trials(2, 1000, false);
      std::mt19937 random{7};
      std::normal_distribution<double> noise(1, 0.01);
      while (!trials.decided()) {
        const bool first = trials.current().id == 0;
        while (!trials.note({0, 1})) {
        }
        std::vector<float> times;
        for (std::size_t i = 0; i < trials.moments().size(); ++i)
          times.push_back(float((first ? 500 : 800) * noise(random)));
        // Now and then another phase of the program lies between two calls.
        const double phase = trials.candidates()[first ? 0 : 1].between.size() == 1 ? 1e6 : 0;
        trials.end_block({times, float((first ? left_behind : 0) + own_work * noise(random) + phase)});
      }
      EXPECT_EQ(trials.best().id, left_behind > 0 ? 1u : 0u) << left_behind << " " << own_work;
    }
  }
}

// Times between calls that vary by less than what a call leaves behind by the machine's figures decide, though not
// clearly by themselves.
TEST(Trials, FiguresTellHowExactTimesBetweenCallsAre) {
  int right = 0, without_figures = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    for (const bool figures : {true, false}) {
      Trials trials(2, 9000, false);
      if (figures) trials.may_leave(std::array{0.0, 30'000.0}, 30'000);
      std::mt19937 random{seed};
      while (!trials.decided()) {
        const bool second = trials.current().id == 1;
        while (!trials.note({0, 1})) {
        }
        const std::vector<float> times(trials.moments().size(), second ? 7000 : 9000);
        trials.end_block({times, float(90'000 + (second ? 9000 : 0) + double(random() % 12'000))});
      }
      (figures ? right : without_figures) += trials.best().id == 0;
    }
  EXPECT_GE(right, 90);
  EXPECT_LE(without_figures, 70);
}

// Calls of one hold what others do meanwhile, and what the other one leaves behind is paid in a few of the times
// between its calls. Long blocks tell as wholes, and without them this is as good as drawn by lot.
TEST(Trials, LongBlocksTellAsWholes) {
  int right = 0, without = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    for (const bool wholes : {true, false}) {
      Trials trials(2, 9000, false, 32);
      std::mt19937 random{seed};
      while (!trials.decided()) {
        const bool second = trials.current().id == 1;
        while (!trials.note({0, 1})) {
        }
        EXPECT_EQ(trials.moments().size(), 32u);
        std::vector<float> times;
        for (int i = 0; i < 32; ++i) times.push_back(second ? 2000 : float(2000 + random() % 8000));
        const float whole = float((second ? 22'000 : 10'000) * (1 + double(random() % 20) / 100));
        trials.end_block({times, float(random() % 20'000), wholes ? whole : 0});
      }
      (wholes ? right : without) += trials.best().id == 0;
    }
  EXPECT_EQ(right, 100);
  EXPECT_LE(without, 60);
}

// A block ends where there are enough calls, however many of them are at once.
TEST(Trials, BlocksCountCallsThatAreAtOnce) {
  Trials trials(2, 9000, false, 32);
  EXPECT_FALSE(trials.note({0, 1}, 64)) << "does not count";
  EXPECT_FALSE(trials.note({2, 3}, 64)) << "two times, at least";
  EXPECT_TRUE(trials.note({4, 5}, 64));
}

// Times between calls that tell nothing: what figures say counts, unless the program does not come back to its buffers.
TEST(Trials, TakeFromFiguresWhatTimesBetweenCallsDoNotTell) {
  int left_alone = 0, untouched = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    for (const bool works : {true, false}) {
      Trials trials(2, 9000, false);
      trials.may_leave(std::array{0.0, 30'000.0}, 140'000);
      std::mt19937 random{seed};
      while (!trials.decided()) {
        const bool second = trials.current().id == 1;
        while (!trials.note({0, 1})) {
        }
        const std::vector<float> times(trials.moments().size(), second ? 8000 : 14'000);
        trials.end_block({times, works ? float(110'000 + (second ? 15'000 : 0) + double(random() % 90'000))
                                       : float(100 + random() % 100)});
      }
      if (works) left_alone += trials.best().id == 0;
      else untouched += trials.best().id == 1;
    }
  EXPECT_GE(left_alone, 90);
  EXPECT_EQ(untouched, 100);
}

// The model's choice drops out early; what the others leave behind counts between them all the same.
TEST(Trials, CompareWhatIsLeftWithoutTheModelsChoice) {
  Trials trials(3, 30e3, false);
  const float inside[] = {33e3, 15e3, 24e3}, behind[] = {27e3, 28e3, 5e3};
  std::mt19937 random{7};
  std::normal_distribution<double> noise(1, 0.05);
  while (!trials.decided()) {
    const unsigned now = trials.current().id;
    while (!trials.note({0, 1})) {
    }
    std::vector<float> times;
    for (std::size_t i = 0; i < trials.moments().size(); ++i) times.push_back(inside[now] * float(noise(random)));
    trials.end_block({times, behind[now] * float(noise(random))});
  }
  EXPECT_LT(trials.candidates()[0].between.size(), 3u);
  EXPECT_EQ(trials.best().id, 2u);
}

// The program's own work varies more than algorithms do: it must not decide.
TEST(Trials, AreNotMisledByTheProgramsWork) {
  int right = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Trials trials(2, 1000, false);
    std::mt19937 random{seed};
    while (!trials.decided()) {
      const bool first = trials.current().id == 0;
      while (!trials.note({0, 1})) {
      }
      const std::vector<float> times(trials.moments().size(), first ? 500 : 800);
      // Most pauses are alike, some hold another phase of the program.
      const bool other_phase = random() % 3 == 0;
      trials.end_block({times, float(seed % 2 ? random() % 20000 : other_phase ? 1e6 + double(random() % 1000) : 300)});
    }
    right += trials.best().id == 0;
  }
  EXPECT_GE(right, 99);
}

TEST(Trials, GiveUpWhatCannotRun) {
  Trials trials(2, 1000, false);
  for (int turn = 0; !trials.decided() && turn < 100; ++turn) {
    if (trials.current().id == 0) {
      trials.fail_block();
    } else {
      while (!trials.note({0, 1})) {
      }
      const std::vector<float> times(trials.moments().size(), 100);
      trials.end_block({times});
    }
  }
  EXPECT_TRUE(trials.decided());
  EXPECT_EQ(trials.best().id, 1u);
}

TEST(Trials, TheWatchSeesAChangeThatStays) {
  Trials trials(1, 1000, false);
  for (int i = 0; i < 80; ++i) EXPECT_FALSE(trials.changed(i % 9 ? 1000 : 50000));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(trials.changed(3000));  // a passing one
  for (int i = 0; i < 80; ++i) EXPECT_FALSE(trials.changed(1000));
  bool seen = false;
  for (int i = 0; i < 16; ++i) seen |= trials.changed(3000);
  EXPECT_TRUE(seen);
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
    // From the middle on one member is late: a change that the first one sees.
    if (i > calls / 2 && rank == size - 1) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (own() % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
    if (!chooser.perform((*created)->context(), call)) return false;
    for (int r = 0; r < size; ++r)
      if (recv[std::size_t(r) * n] != std::byte(r + i) || recv[std::size_t(r + 1) * n - 1] != std::byte(r + i))
        return false;
  }
  bool decided = true;
  unsigned restarts = 0;
  for (const std::size_t n : {8, 1000}) {
    const Trials& trials = *chooser.trials_of(Collective::allgather, n);
    decided &= trials.restarts() > 0 || trials.decided();
    restarts += trials.restarts();
    char name[32] = {}, names[testing::most_processes][32];
    std::snprintf(name, sizeof name, "%u", trials.best().id);
    bootstrap.allgather(name, names, sizeof name);
    for (int r = 0; r < size; ++r) decided &= !std::strcmp(names[r], names[0]);
  }
  if (!restarts) std::fprintf(stderr, "nothing was tried again\n");
  Team::close(std::move(*created));
  return decided && restarts > 0;
}

// One member alone times calls of a decided cell: it must skip what the others skip.
bool watch_out_of_reach(Process& process, PageBootstrap& bootstrap, int rank, int size) {
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

// The call that one member alone would time is one to which the cell's choice does not apply: nobody tries anything.
bool watch_what_does_not_apply(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto created = creation::create_team(process, rank, size, bootstrap);
  if (!created) return false;
  choosing::Chooser chooser;
  chooser.serve(**created);
  chooser.override_with("bcast:line,slots");
  char data[128];
  int i = 0;
  auto bcast = [&](std::size_t n) {
    ++i;
    std::memset(data, rank == 0 ? i : 0, sizeof data);
    Call call{Collective::bcast, n, data, data};
    call.root = 0;
    return chooser.perform((*created)->context(), call) && data[0] == char(i) && data[n - 1] == char(i);
  };
  constexpr std::size_t fits = 100, does_not = 125;  // a line holds 120 bytes; both are of one class
  const Trials* trials = nullptr;
  while (i < 2000 && !(trials && trials->decided())) {
    if (!bcast(fits)) return false;
    trials = chooser.trials_of(Collective::bcast, fits);
  }
  if (!trials || !trials->decided()) return false;
  auto row = [](const char* name) -> const collectives::Algorithm& {
    return *std::ranges::find_if(collectives::algorithms(Collective::bcast),
                                 [&](const auto& each) { return !std::strcmp(each.name, name); });
  };
  chooser.decide(Collective::bcast, fits, row("line"), row("slots"));
  for (int k = 0; k < 2000; ++k)
    if (!bcast(k * 7 % 11 < 6 ? fits : does_not)) return false;
  Team::close(std::move(*created));
  return true;
}

constexpr Pace quick{.first = 2, .apart = 2, .sweeps = 1, .watch = 3, .pause = 1000, .price = 0, .epoch = 256};

class Processes : public ::testing::TestWithParam<int> {};
TEST_P(Processes, SkipTogether) {
  const testing::Pacing pacing(quick);
  EXPECT_EQ(0, run_members(GetParam(), 60, watch_out_of_reach));
}

TEST_P(Processes, AgreeAndGoOnTrying) {
  const testing::Pacing pacing(
      {.first = 2, .apart = 2, .sweeps = 3, .watch = 4, .pause = 1000, .price = 0, .epoch = 256});
  EXPECT_EQ(0, run_members(GetParam(), 120, try_everything));
}
INSTANTIATE_TEST_SUITE_P(Trials, Processes, ::testing::Values(2, 3, 5));

TEST(Choosing, OnlyWhatAppliesIsWatched) {
  const testing::Pacing pacing(quick);
  Settings settings;
  settings.wait = WaitStyle::spin;  // where ranks share CPUs nothing is tried for such lengths
  for (const int size : {2, 3}) EXPECT_EQ(0, run_members(size, 60, watch_what_does_not_apply, settings));
}

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
                std::size_t most = 0;
                for (int i = 0; i < 5000; ++i) {
                  if (!chooser.perform((*created)->context(), call)) return false;
                  const Trials* const trials = chooser.trials_of(Collective::allgather, sizeof send);
                  if (trials) most = std::max(most, trials->block().size());
                  if (trials && trials->decided()) break;
                }
                // The last call of a block empties it.
                const bool share = (*created)->shape().oversubscribed();
                return most == (share ? constants::block_oversubscribed : constants::block_timed);
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
