// Operations that may overlap others: several outstanding, beside calls that return when they are done.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <random>
#include <thread>

#include "engine/choosing/overlapping.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::choosing {
namespace {

using collectives::Call;
using collectives::Collective;
using team::Node;
using team::Team;
using testing::PageBootstrap;
using testing::run_processes;

struct Sum {
  std::vector<std::uint64_t> send, recv;
  std::optional<Overlapping> operation;
  std::uint64_t number = 0;
};

class User {
 public:
  User(Team& team, std::string_view text) : team_(team) {
    chooser_.serve(team);
    chooser_.override_with(text);
    Overlapping({}, choosers_).prepare(team);
    for (auto& chooser : choosers_) chooser->override_with(text);
  }
  void issue(std::size_t count) {
    auto& sum = outstanding_.emplace_back(std::make_unique<Sum>());
    sum->number = ++number_;
    sum->send.resize(count);
    sum->recv.resize(count);
    for (std::size_t i = 0; i < count; ++i) sum->send[i] = value(team_.rank(), sum->number, i);
    const Call call = count ? allreduce(sum->send.data(), sum->recv.data(), count) : Call{Collective::barrier};
    sum->operation.emplace(call, choosers_);
    team_.tracks().issue(*sum->operation);
  }
  bool call(std::size_t count) {
    std::vector<std::uint64_t> send(count), recv(count);
    ++number_;
    for (std::size_t i = 0; i < count; ++i) send[i] = value(team_.rank(), number_, i);
    chooser_.perform(team_.track(), allreduce(send.data(), recv.data(), count));
    return right(recv, number_);
  }
  std::size_t outstanding() const { return outstanding_.size(); }
  // Completes one of them, if it is done; `any`: not the oldest.
  bool complete(std::size_t which, bool& good) {
    Sum& sum = *outstanding_[which];
    if (!sum.operation->complete()) return false;
    good &= !sum.operation->error() && right(sum.recv, sum.number);
    outstanding_.erase(outstanding_.begin() + std::ptrdiff_t(which));
    return true;
  }
  Sum& at(std::size_t which) { return *outstanding_[which]; }

 private:
  static std::uint64_t value(int rank, std::uint64_t number, std::size_t i) {
    return (std::uint64_t(rank) + 1) * (number * 131 + i);
  }
  bool right(const std::vector<std::uint64_t>& recv, std::uint64_t number) const {
    const auto p = std::uint64_t(team_.size());
    for (std::size_t i = 0; i < recv.size(); ++i)
      if (recv[i] != p * (p + 1) / 2 * (number * 131 + i)) return false;
    return true;
  }
  static Call allreduce(const void* send, void* recv, std::size_t count) {
    Call call{Collective::allreduce, count * 8, send, recv};
    call.count = count;
    call.type = reducing::Type::u64;
    call.fold = reducing::fold(reducing::Op::sum, reducing::Type::u64);
    return call;
  }
  Team& team_;
  Chooser chooser_;
  Overlapping::Choosers choosers_;
  std::uint64_t number_ = 0;
  std::deque<std::unique_ptr<Sum>> outstanding_;
};

bool overlap(Node& node, PageBootstrap& bootstrap, int rank, int size, std::string_view text, int rounds) {
  auto team = Team::create(node, rank, size, bootstrap);
  if (!team) return false;
  bool good = true;
  {
    User user(**team, text);
    std::mt19937 everybody{unsigned(size)}, own{unsigned(rank)};
    for (int i = 0; i < rounds && good; ++i) {
      const std::size_t lengths[] = {0, 1, 40, 400, 3000, 20000, 100000};
      const std::size_t count = lengths[everybody() % (i % 16 ? 5 : 7)];
      const unsigned what = everybody() % 4;
      if (what == 0) good &= user.call(count + 1);
      else user.issue(count);
      if (own() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 200));
      // Some look often, some seldom; at most a dozen are outstanding.
      while (user.outstanding() && good && (own() % 3 == 0 || user.outstanding() > 12)) {
        node.progress.poll();
        user.complete(own() % user.outstanding(), good);
        if (own() % 8 == 0) sched_yield();
      }
    }
    while (user.outstanding() && good) {
      node.progress.poll();
      if (!user.complete(own() % user.outstanding(), good)) sched_yield();
    }
  }
  Team::close(std::move(*team));
  return good;
}

class Processes : public ::testing::TestWithParam<int> {};
TEST_P(Processes, OverlapByAnyAlgorithm) {
  for (const char* text : {"", "allreduce:slots,oneshot,partitioned", "allreduce:direct", "allreduce:tree,direct-pull"})
    EXPECT_EQ(0, run_processes(GetParam(), 60,
                               [&](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                                 return overlap(node, bootstrap, rank, size, text, size > 4 ? 300 : 1500);
                               }))
        << text;
}
INSTANTIATE_TEST_SUITE_P(Tracks, Processes, ::testing::Values(1, 2, 3, 4, 5, 7, 9));

TEST(Tracks, ServeEveryMeeting) {
  for (const Meeting meeting : {Meeting::flags, Meeting::tree, Meeting::gate}) {
    Settings settings;
    settings.meeting = meeting;
    EXPECT_EQ(0, run_processes(
                     4, 60,
                     [&](Node& node, PageBootstrap& bootstrap, int rank, int size) {
                       return overlap(node, bootstrap, rank, size, "", 500);
                     },
                     settings));
  }
}

TEST(Tracks, TellOfADeadMember) {
  EXPECT_EQ(1, run_processes(3, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
              auto team = Team::create(node, rank, size, bootstrap);
              if (!team) return false;
              User user(**team, "");
              if (rank == 2) _exit(1);
              for (int i = 0; i < 4; ++i) user.issue(i ? 10 : 0);
              for (std::size_t i = 0; i < 4; ++i) {
                auto& operation = *user.at(i).operation;
                while (!operation.complete()) {
                  node.progress.poll();
                  sched_yield();
                }
                if (!operation.error()) return false;
                try {
                  std::rethrow_exception(operation.error());
                } catch (const team::Died&) {
                }
              }
              return true;
            }));
}

// Whoever has no memory says so, and the others do not wait for it.
TEST(Tracks, WithoutRoomAllEndWithAnError) {
  EXPECT_EQ(0, run_processes(3, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
              auto team = Team::create(node, rank, size, bootstrap);
              if (!team) return false;
              User user(**team, "");
              if (rank == 1) {
                testing::run_out_of_memory(node), testing::use_up(node);
                try {
                  user.issue(10);
                } catch (const std::bad_alloc&) {
                  try {
                    (*team)->break_off("out of memory", "in a test");
                  } catch (const team::Broken&) {
                    return true;
                  }
                }
                return false;
              }
              user.issue(10);
              while (!user.at(0).operation->complete()) node.progress.poll();
              return bool(user.at(0).operation->error());
            }));
}

// Without copy buffers of one member the call goes by pieces.
TEST(Tracks, GoWithoutCopyBuffers) {
  EXPECT_EQ(0, run_processes(3, 30, [](Node& node, PageBootstrap& bootstrap, int rank, int size) {
              auto team = Team::create(node, rank, size, bootstrap);
              if (!team) return false;
              User user(**team, "allreduce:partitioned");
              bool good = true;
              user.issue(0);
              while (user.outstanding() && good) node.progress.poll(), user.complete(0, good);
              if (rank == 1) testing::run_out_of_memory(node), testing::use_up(node);
              for (int i = 0; i < 3; ++i) user.issue(20000);
              while (user.outstanding() && good) node.progress.poll(), user.complete(0, good);
              Team::close(std::move(*team));
              return good;
            }));
}

}  // namespace
}  // namespace nearfield::choosing
