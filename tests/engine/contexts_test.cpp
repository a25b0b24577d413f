// Operations that may overlap others: several outstanding, beside calls that return when they are done.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <random>
#include <thread>

#include "engine/base/out_of_memory.hpp"
#include "engine/choosing/queued_call.hpp"
#include "engine/collectives/pieces/rounds.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::choosing {
namespace {

using collectives::Call;
using collectives::Collective;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_processes;

struct Sum {
  std::vector<std::uint64_t> send, recv;
  std::optional<QueuedCall> operation;
  std::uint64_t number = 0;
};

class User {
 public:
  User(Team& team, std::string_view text) : team_(team) {
    chooser_.serve(team);
    chooser_.override_with(text);
    make_choosers(choosers_, team);
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
    team_.contexts().issue(*sum->operation);
  }
  bool call(std::size_t count) {
    std::vector<std::uint64_t> send(count), recv(count);
    ++number_;
    for (std::size_t i = 0; i < count; ++i) send[i] = value(team_.rank(), number_, i);
    chooser_.perform(team_.context(), allreduce(send.data(), recv.data(), count));
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
  FurtherChoosers choosers_;
  std::uint64_t number_ = 0;
  std::deque<std::unique_ptr<Sum>> outstanding_;
};

bool overlap(Process& process, PageBootstrap& bootstrap, int rank, int size, std::string_view text, int rounds) {
  auto team = creation::create_team(process, rank, size, bootstrap);
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
        process.progress().poll();
        user.complete(own() % user.outstanding(), good);
        if (own() % 8 == 0) sched_yield();
      }
    }
    while (user.outstanding() && good) {
      process.progress().poll();
      if (!user.complete(own() % user.outstanding(), good)) sched_yield();
    }
  }
  Team::close(std::move(*team));
  return good;
}

class Processes : public ::testing::TestWithParam<int> {};
TEST_P(Processes, OverlapByAnyAlgorithm) {
  for (const char* text : {"", "allreduce:slots,oneshot,partitioned", "allreduce:direct", "allreduce:tree,direct-pull"})
    EXPECT_EQ(0, run_members(GetParam(), 60,
                             [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                               return overlap(process, bootstrap, rank, size, text,
                                              testing::rounds_of(size > 4 ? 300 : 1500));
                             }))
        << text;
}
INSTANTIATE_TEST_SUITE_P(ContextPool, Processes, ::testing::Values(1, 2, 3, 4, 5, 7, 9));

TEST(ContextPool, ServeEveryMeeting) {
  for (const Meeting meeting : {Meeting::flags, Meeting::tree, Meeting::gate}) {
    Settings settings;
    settings.meeting = meeting;
    EXPECT_EQ(0, run_members(
                     4, 60,
                     [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                       return overlap(process, bootstrap, rank, size, "", testing::rounds_of(500));
                     },
                     settings));
  }
}

TEST(ContextPool, TellOfADeadMember) {
  EXPECT_EQ(1, run_processes(3, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              User user(**team, "");
              if (rank == 2) _exit(1);
              for (int i = 0; i < 4; ++i) user.issue(i ? 10 : 0);
              for (std::size_t i = 0; i < 4; ++i) {
                auto& operation = *user.at(i).operation;
                while (!operation.complete()) {
                  process.progress().poll();
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
TEST(ContextPool, WithoutRoomAllEndWithAnError) {
  EXPECT_EQ(0, run_members(3, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              User user(**team, "");
              if (rank == 1) {
                testing::run_out_of_memory(process), testing::use_up(process);
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
              while (!user.at(0).operation->complete()) process.progress().poll();
              return bool(user.at(0).operation->error());
            }));
}

// Also who finds out within a body that others are in.
TEST(ContextPool, ABodyWithoutMemoryEndsThoseOfTheOthers) {
  struct Meeting final : context::Task {
    void run(context::CollectiveContext& context) override {
      if (context.rank() == 1) throw OutOfMemory();
      context.slots.allgather(nullptr, 0);
    }
  };
  EXPECT_EQ(0, run_members(3, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              Meeting meeting;
              (*team)->contexts().issue(meeting);
              while (!meeting.complete()) process.progress().poll(), sched_yield();
              if (!meeting.error() || !(*team)->broken_off()) return false;
              try {
                std::rethrow_exception(meeting.error());
              } catch (const std::bad_alloc&) {
                return rank == 1;
              } catch (const team::Broken&) {
                return rank != 1;
              }
            }));
}

// Every operation, by rows that need copy buffers. What rank r gives in its k-th block: r * 1000 + k * 10 + i.
TEST(ContextPool, EveryOperationGoesWithoutCopyBuffers) {
  static constexpr std::size_t count = 5000;
  EXPECT_EQ(0, run_members(3, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              FurtherChoosers choosers;
              make_choosers(choosers, **team);
              for (auto& chooser : choosers)
                chooser->override_with(
                    "bcast:pipeline;reduce:pipeline;allreduce:partitioned;allgather:rounds;alltoall:rounds;"
                    "gather:pipeline;scatter:pipeline;reduce_scatter_block:rounds;reduce_scatter:rounds;scan:rounds;"
                    "exscan:rounds");
              auto run = [&](const Call& call) {
                QueuedCall operation(call, choosers);
                (*team)->contexts().issue(operation);
                while (!operation.complete()) process.progress().poll(), sched_yield();
                return !operation.error();
              };
              if (!run(Call{Collective::barrier})) return false;
              if (rank == 1) testing::run_out_of_memory(process), testing::use_up(process);
              auto value = [](int r, std::size_t k, std::size_t i) { return std::uint64_t(r) * 1000 + k * 10 + i; };
              bool good = true;
              for (std::size_t c = 0; c < collectives::collective_count && good; ++c) {
                const auto collective = Collective(c);
                const auto& operation = collectives::operation(collective);
                if (operation.moves_nothing()) continue;
                const int root = 2;
                const std::size_t given = operation.gives.blocks(rank, size, root);
                const std::size_t got = operation.gets.blocks(rank, size, root);
                std::vector<std::uint64_t> send(given * count), recv(got * count);
                for (std::size_t k = 0; k < given; ++k)
                  for (std::size_t i = 0; i < count; ++i) send[k * count + i] = value(rank, k, i);
                Call call{collective, count * 8, send.data(), recv.data(), root};
                if (operation.reduces()) {
                  call.count = count;
                  call.type = reducing::Type::u64;
                  call.fold = reducing::fold(reducing::Op::sum, reducing::Type::u64);
                }
                good &= run(call);
                const bool part = operation.gets.amount == collectives::Amount::part;
                const auto own = part ? collectives::part_of(call, size, rank) : collectives::Slice{0, count};
                const std::size_t mine = operation.gives.amount == collectives::Amount::blocks ? std::size_t(rank) : 0;
                for (std::size_t k = 0; k < got && good; ++k)
                  for (std::size_t i = own.begin; i < own.end && good; ++i) {
                    std::uint64_t expected = 0;
                    if (operation.reduces()) {
                      const int last = operation.combines == collectives::Combines::all_operands ? size
                                       : operation.combines == collectives::Combines::up_to_own  ? rank + 1
                                                                                                 : rank;
                      for (int r = 0; r < last; ++r) expected += value(r, mine, i);
                    } else {
                      const bool of_root = operation.gives.who == collectives::Who::root;
                      expected = value(of_root ? root : int(k), mine, i);
                    }
                    good = recv[k * count + i - own.begin] == expected;
                    if (!good) std::fprintf(stderr, "%s: block %zu, %zu\n", operation.name.data(), k, i);
                  }
              }
              Team::close(std::move(*team));
              return good;
            }));
}

// However many there have been at a time.
TEST(ContextPool, AllThatAreLetGoOfAreUsedAgain) {
  EXPECT_EQ(0, run_members(2, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              constexpr unsigned many = 150;
              bool good = true;
              for (int round = 0; round < 3; ++round) {
                context::TaskQueue* reserved[many];
                for (unsigned i = 0; i < many; ++i) {
                  reserved[i] = (*team)->contexts().reserve();
                  good &= reserved[i]->context.number() == context::further + 1 + i;
                }
                for (unsigned i = 0; i < many; ++i) (*team)->contexts().let_go(*reserved[rank ? i : many - 1 - i]);
              }
              Team::close(std::move(*team));
              return good;
            }));
}

// All lack a planned context where one of them has no memory for it, and nobody waits.
TEST(ContextPool, NobodyPlansWithoutRoom) {
  EXPECT_EQ(0, run_members(3, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              const auto* const first = (*team)->contexts().reserve();
              if (rank == 1) testing::run_out_of_memory(process), testing::use_up(process);
              const auto* const second = (*team)->contexts().reserve();
              (*team)->contexts().let_go(*first);
              const auto* const third = (*team)->contexts().reserve();
              (*team)->contexts().let_go(*third);
              Team::close(std::move(*team));
              return first && !second && third == first;
            }));
}

}  // namespace
}  // namespace nearfield::choosing
