// What bytes cost that change cores: measured by the first two members of a team, stored, and read again.
#include "engine/machine/calibration.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "engine/collectives/table.hpp"
#include "engine/settings/settings.hpp"
#include "tests/engine/team.hpp"

namespace nearfield {
namespace {

using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

// Where ranks of this test keep figures.
class Figures : public ::testing::Test {
 protected:
  Figures() : directory_(::testing::TempDir() + "figures-" + std::to_string(getpid())) {
    setenv("XDG_CACHE_HOME", directory_.c_str(), 1);
  }
  ~Figures() override {
    unlink(stored_machine().c_str());
    rmdir((directory_ + "/nearfield").c_str());
    rmdir(directory_.c_str());
  }
  const std::string directory_;
};

PairCosts pair_costs(double line) { return {line, 0.01, 0.02, 0.03, 0.04, 0.05}; }

TEST_F(Figures, AreMeasuredByTwoMembersAndStored) {
  Settings settings;
  settings.calibrate = true;
  settings.wait = WaitStyle::spin;  // as if each had a CPU of its own
  // Whoever shares its CPUs with other programs may give up.
  for (int i = 0; i < 50 && access(stored_machine().c_str(), R_OK) != 0; ++i)
    ASSERT_EQ(0, run_members(
                     2, 30,
                     [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                       const std::uint64_t start = waiting::nanoseconds();
                       auto created = creation::create_team(process, rank, size, bootstrap);
                       return created && process.has_calibrated() == (rank == 0) &&
                              waiting::nanoseconds() - start < 2'000'000'000;
                     },
                     settings));
  if (access(stored_machine().c_str(), R_OK) != 0) GTEST_SKIP() << "two processes never ran at the same time";
  auto stored = read_stored_machine(stored_machine());
  ASSERT_TRUE(stored);
  for (const double value : {stored->near_pair.line, stored->near_pair.own, stored->near_pair.copy,
                             stored->near_pair.fill, stored->near_pair.empty})
    EXPECT_GT(value, 0);
}

// Whoever has been told that the line was all waits for nothing more. Where the first goes without an answer, others
// had its CPU.
TEST(Calibration, EndsForBothWhereTheLineIsAll) {
  for (const bool bytes : {false, true}) {
    bool answered = false;
    for (int i = 0; i < 50 && !answered; ++i) {
      Calibration::ControlBlock words{};
      std::vector<std::byte> memory(9 * Calibration::piece);
      bool ended = false;
      std::thread other([&] { ended = Calibration(words, memory.data()).second(); });
      const auto found = Calibration(words, memory.data()).first([&](double) {
        return bytes ? std::span(memory) : std::span<std::byte>();
      });
      other.join();
      answered = found.has_value();
      EXPECT_TRUE(ended || !answered);
    }
    if (!answered) GTEST_SKIP() << "two threads never ran at the same time";
  }
}

TEST_F(Figures, OfAnotherCpuDoNotCount) {
  Machine machine;
  machine.near_pair = pair_costs(50);
  ASSERT_TRUE(store_machine(stored_machine(), machine));
  auto read = read_stored_machine(stored_machine());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->near_pair.fill, 0.04);
  EXPECT_EQ(read->far_pair.line, 0);
  std::ofstream(stored_machine()) << "cpu = \"Z80\"\n" << describe(machine);
  EXPECT_FALSE(read_stored_machine(stored_machine()));
  std::ofstream(stored_machine()) << describe(machine);
  EXPECT_FALSE(read_stored_machine(stored_machine()));
  EXPECT_FALSE(store_machine("/dev/null/nowhere.toml", machine));
}

TEST(PairCosts, OfEachStateIsKeptApart) {
  Machine machine;
  EXPECT_EQ(known_pair(machine, 60), nullptr);
  EXPECT_EQ(slower_pair(machine, 60, true), nullptr);
  learn(machine, pair_costs(240));
  EXPECT_EQ(machine.near_pair.line, 240);
  learn(machine, pair_costs(60));
  EXPECT_EQ(machine.near_pair.line, 60);
  EXPECT_EQ(machine.far_pair.line, 240);
  EXPECT_EQ(known_pair(machine, 70), &machine.near_pair);
  EXPECT_EQ(known_pair(machine, 25), &machine.near_pair);  // siblings on one core, for a while
  EXPECT_EQ(known_pair(machine, 200), &machine.far_pair);
  EXPECT_EQ(known_pair(machine, 1000), nullptr);
  learn(machine, pair_costs(300));
  EXPECT_EQ(machine.far_pair.line, 300);
  learn(machine, pair_costs(25));
  learn(machine, pair_costs(120));
  EXPECT_EQ(machine.near_pair.line, 25);
  EXPECT_EQ(machine.far_pair.line, 60);
  EXPECT_EQ(machine.further[0].line, 120);
  EXPECT_EQ(machine.further[1].line, 300);
  EXPECT_EQ(known_pair(machine, 110), &machine.further[0]);
  EXPECT_EQ(slower_pair(machine, 27, false), &machine.far_pair);
  EXPECT_EQ(slower_pair(machine, 27, true), &machine.further[1]);
  EXPECT_EQ(slower_pair(machine, 300, true), nullptr);
  learn(machine, pair_costs(38));  // one more than there is room for: its nearest neighbour goes
  EXPECT_EQ(machine.near_pair.line, 38);
  EXPECT_EQ(machine.far_pair.line, 60);
  EXPECT_EQ(machine.further[0].line, 120);
  EXPECT_EQ(machine.further[1].line, 300);
}

TEST(PairCosts, OfAMeshIsOne) {
  Machine machine;
  learn(machine, pair_costs(97));
  EXPECT_EQ(known_pair(machine, 138), &machine.near_pair);
  learn(machine, pair_costs(138));
  EXPECT_EQ(machine.near_pair.line, 138);
  EXPECT_EQ(machine.far_pair.line, 0);
  // A state that lies between two is like both of them, and stands for them.
  learn(machine, pair_costs(300));
  learn(machine, pair_costs(203));
  EXPECT_EQ(machine.near_pair.line, 203);
  EXPECT_EQ(machine.far_pair.line, 0);
}

// What a busy machine has shown stays until a quiet hour.
TEST(PairCosts, AreMeasuredAgainAndTheLeastStay) {
  Machine machine;
  EXPECT_TRUE(to_be_measured(machine, 100, 0));
  PairCosts busy = pair_costs(100), quiet = pair_costs(110);
  busy.left *= 3;
  busy.hour = 1000;
  learn(machine, busy);
  EXPECT_TRUE(to_be_measured(machine, 100, 1000));
  EXPECT_FALSE(to_be_measured(machine, 40, 1000));  // siblings on one core, for a while
  quiet.hour = 1000;
  learn(machine, quiet);
  EXPECT_EQ(machine.near_pair.line, 110);
  EXPECT_EQ(machine.near_pair.left, quiet.left);
  EXPECT_TRUE(to_be_measured(machine, 100, 1000));
  learn(machine, busy);
  EXPECT_EQ(machine.near_pair.left, quiet.left);
  EXPECT_EQ(machine.near_pair.times, 3);
  EXPECT_FALSE(to_be_measured(machine, 100, 1000));  // not of one busy hour alone
  EXPECT_TRUE(to_be_measured(machine, 100, 1001));
  busy.hour = 1001;
  learn(machine, busy);
  EXPECT_FALSE(to_be_measured(machine, 100, 1002));
  EXPECT_TRUE(to_be_measured(machine, 100, 1025));
  busy.hour = 1025;
  learn(machine, busy);
  EXPECT_EQ(machine.near_pair.left, quiet.left);
  EXPECT_FALSE(to_be_measured(machine, 100, 9000));
  busy.times = machine::measured_enough;  // somebody has asked for it
  learn(machine, busy);
  EXPECT_EQ(machine.near_pair.left, busy.left);
}

// ---------------------------------------------------------------- copy buffers of teams
void run(context::CollectiveContext& context, const collectives::Call& call, const char* name) {
  for (const auto& row : collectives::algorithms(call.collective))
    if (!std::strcmp(row.name, name)) row.run(context, call);
}

TEST(Staging, GivesBackWhatItHolds) {
  Settings settings;
  settings.wait = WaitStyle::spin;
  EXPECT_EQ(0, run_members(
                   2, 60,
                   [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                     constexpr std::size_t bytes = 100'000;
                     std::vector<std::byte> send(bytes, std::byte(rank + 1)), recv(bytes);
                     memory::CopyBuffers& span = process.copy_buffers();
                     const std::size_t all = span.free_bytes();
                     // More teams than the span has buffers for, if each kept its last ones.
                     const std::size_t count = 3 * span.span() / (128 << 10);
                     std::vector<std::unique_ptr<Team>> teams;
                     std::size_t least = all;
                     for (std::size_t i = 0; i < count; ++i) {
                       auto created = creation::create_team(process, rank, size, bootstrap);
                       if (!created) return false;
                       teams.push_back(std::move(*created));
                       std::fill(recv.begin(), recv.end(), std::byte{0});
                       const bool root = rank == int(i % 2);
                       run(teams.back()->context(),
                           {collectives::Collective::bcast, bytes, root ? send.data() : nullptr,
                            root ? nullptr : recv.data(), int(i % 2)},
                           "pipeline");
                       for (const std::size_t at : {std::size_t{0}, bytes - 1})
                         if (!root && recv[at] != std::byte(2 - rank)) return false;
                       bootstrap.meet();
                       least = std::min(least, span.free_bytes());
                     }
                     const bool some = least < all, spared = least >= span.span() / 2;
                     for (auto& each : teams) {
                       bootstrap.meet();
                       Team::close(std::move(each));
                     }
                     bootstrap.meet();
                     Team::close(std::move(
                         *creation::create_team(process, rank, size, bootstrap)));  // frees what both have closed
                     bootstrap.meet();
                     Team::close(std::move(*creation::create_team(process, rank, size, bootstrap)));
                     return some && spared && span.free_bytes() == all;
                   },
                   settings));
}

}  // namespace
}  // namespace nearfield
