// Short rooted calls that members leave before the root comes.
#include "engine/choosing/leaving.hpp"

#include <gtest/gtest.h>

#include "engine/context/pool.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::choosing {
namespace {

using collectives::Call;
using collectives::Collective;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

constexpr std::size_t count = 500;

class Member {
 public:
  explicit Member(Team& team) : team_(team) {
    chooser_.serve(team);
    leaving.may_leave = true;
  }
  // Each gives `number` and its rank to the first. Whether it was left; `right`: what has come.
  bool gather(std::uint64_t number, bool& right) {
    const bool root = team_.rank() == 0;
    std::vector<std::uint64_t> send(count, number * 10 + std::uint64_t(team_.rank()));
    std::vector<std::uint64_t> recv(root ? count * std::size_t(team_.size()) : 0);
    const Call call{Collective::gather, count * 8, send.data(), recv.data(), 0};
    const std::string_view ran = leaving.perform(chooser_, team_.context(), call, collectives::pack(call))->name;
    team_.context().calls.leave();
    for (std::size_t i = 0; i < recv.size(); ++i) right &= recv[i] == number * 10 + i / count;
    return ran == "left";
  }
  Leaving leaving;

 private:
  Team& team_;
  Chooser chooser_;
};

// The others come there first: behind a few of them nothing is left.
bool ahead(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  Member member(**team);
  bool good = true;
  for (int round = 0; round < 5 && good; ++round) {
    bool left = false;
    if (rank == 0) bootstrap.meet();
    for (std::uint64_t i = 1; i <= 100; ++i) left = member.gather(i, good);
    if (rank != 0) bootstrap.meet();
    good &= left == (rank != 0) && process.runner().unattended() <= left;
    member.leaving.settle();
  }
  Team::close(std::move(*team));
  return good && !process.runner().unattended();
}
TEST(Leaving, WhoOnlyGivesIsAhead) {
  for (const int size : {2, 3, 5}) EXPECT_EQ(0, run_members(size, 60, ahead));
}

// Whoever completes the last of them says so.
bool freed(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  struct User final : team::TeamUser {
    bool abandoned() const override { return false; }
    void left() override { gone = true; }
    bool gone = false;
  } user;
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  Member member(**team);
  bool good = true;
  if (rank == 0) bootstrap.meet();
  for (std::uint64_t i = 1; i <= 40; ++i) member.gather(i, good);
  good &= (*team)->contexts().first.outlive(user) == (rank != 0);
  if (rank != 0) bootstrap.meet();
  while (process.runner().unattended()) process.progress().poll(), sched_yield();
  good &= user.gone == (rank != 0);
  Team::close(std::move(*team));
  return good;
}
TEST(Leaving, GoesOnWithoutItsUser) { EXPECT_EQ(0, run_members(3, 60, freed)); }

// What is behind a call that has failed is not tried, and the next call that has to wait says why.
bool died(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return false;
  if (rank == 0) _exit(1);
  Member member(**team);
  bool right = true;
  try {
    for (std::uint64_t i = 1; i <= 20; ++i) member.gather(i, right);
    member.leaving.settle();
  } catch (const team::Died&) {
    return !process.runner().unattended();
  }
  return false;
}
TEST(Leaving, SaysLateWhyItHasFailed) { EXPECT_EQ(1, testing::run_processes(3, 30, died)); }

}  // namespace
}  // namespace nearfield::choosing
