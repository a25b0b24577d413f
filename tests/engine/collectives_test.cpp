// Every algorithm of every collective, with random delays, against arithmetic done here.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "engine/choosing/choose.hpp"
#include "engine/collectives/pieces/rounds.hpp"
#include "engine/collectives/table.hpp"
#include "engine/copying/copy.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::collectives {
namespace {

using context::CollectiveContext;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;
using testing::run_processes;

// What rank `r` contributes in round `round` at position `i`.
std::uint32_t value(int r, int round, std::size_t i) {
  return std::uint32_t(r * 2654435761u + unsigned(round) * 40503u + i * 97u);
}

constexpr std::uint32_t untouched = 0xdeadbeef;

// Element `i` of what `me` gets: from the member whose block it is, or out of the operands of all; in that member's
// block for us where it gives one to each.
std::uint32_t expected(const Operation& op, int me, int size, int round, int root, std::size_t count, std::size_t i,
                       std::size_t part) {
  const int block = int(i / count);
  const std::size_t at = i % count + (op.gives.amount == Amount::blocks ? count * std::size_t(me) : part);
  if (!op.reduces()) return value(op.gives.who == Who::root ? root : block, round, at);
  std::uint32_t total = 0;
  const int end = op.combines == Combines::before_own ? me : op.combines == Combines::up_to_own ? me + 1 : size;
  for (int r = 0; r < end; ++r) total += value(r, round, at);
  return total;
}

// An array of a call: in this process's segment, where peers reach it, or private.
class Array {
 public:
  Array(Process& process, std::size_t count, bool mapped) : process_(process), private_(mapped ? 0 : count) {
    if (mapped) offset_ = *process.arena().allocate(count * 4, 64);
    data_ = mapped ? reinterpret_cast<std::uint32_t*>(process.segment().base() + offset_) : private_.data();
  }
  ~Array() {
    if (offset_) process_.arena().free(offset_);
  }
  std::uint32_t* data() { return data_; }
  std::uint32_t& operator[](std::size_t i) { return data_[i]; }

 private:
  Process& process_;
  std::size_t offset_ = 0;
  std::vector<std::uint32_t> private_;
  std::uint32_t* data_;
};

// Every other element of an array, in place of `dense`.
class Apart {
 public:
  Apart(std::size_t count, const std::uint32_t* dense) : data_(2 * count, untouched) {
    for (std::size_t i = 0; i < count; ++i) data_[2 * i] = dense[i];
    element_.add(0, 4);
    laid_ = {reinterpret_cast<std::byte*>(data_.data()), count * 4, element_.view(8)};
  }
  const layout::Data* laid() const { return &laid_; }
  // Its elements into `dense`; false: something lies between them.
  bool collect(std::uint32_t* dense) const {
    bool good = true;
    for (std::size_t i = 0; i < data_.size(); ++i)
      if (i % 2) good &= data_[i] == untouched;
      else dense[i / 2] = data_[i];
    return good;
  }

 private:
  std::vector<std::uint32_t> data_;
  layout::Builder element_;
  layout::Data laid_;
};

// One call; false (with a line on standard error) when any element is wrong.
bool call_and_check(CollectiveContext& context, const Algorithm& algorithm, int round, std::size_t count, int root,
                    bool in_place, bool mapped = false, bool with_gaps = false) {
  const int p = context.size(), me = context.rank();
  const Operation& op = operation(algorithm.collective);
  const std::size_t bytes = count * 4, all = count * std::size_t(p);
  Array send(context.process(), all, mapped), recv(context.process(), all + 1, mapped);
  std::fill_n(recv.data(), all + 1, untouched);
  for (std::size_t i = 0; i < all; ++i) send[i] = value(me, round, i);
  Call call{algorithm.collective, bytes};
  call.root = root;
  call.count = count;
  call.type = reducing::Type::u32;
  call.op = reducing::Op::sum;
  call.fold = reducing::fold(call.op, call.type);
  if (round % 2) call.type = reducing::Type::none;  // nothing is known of the operator: operands stay in order
  call.send = send.data();
  call.recv = recv.data();
  // Parts of any lengths; one round in three they are as equal as they can be.
  std::vector<std::size_t> ends(std::size_t(p) + 1, 0);
  std::mt19937 cuts{unsigned(round)};
  for (std::size_t r = 1; r < std::size_t(p); ++r) ends[r] = cuts() % 4 ? cuts() % (count + 1) : count;
  ends[std::size_t(p)] = count;
  std::ranges::sort(ends);
  if (op.gets.amount == Amount::part && round % 3) call.parts = ends.data();
  const Slice part = op.gets.amount == Amount::part ? part_of(call, p, me) : Slice{0, 0};
  std::uint32_t* result = recv.data();
  if (in_place && op.gives.has(me, root) && op.gets.has(me, root)) {
    const std::size_t at = op.in_place_at(me, count);
    switch (op.in_place) {
      case InPlace::never: break;
      case InPlace::own_block_of_recv:
        std::copy_n(send.data(), count, recv.data() + at);
        call.send = recv.data() + at;
        break;
      default: call.recv = result = send.data() + at;
    }
  }
  if (!algorithm.applies(context.shape(), call)) return true;
  // Of a broadcast any members may have gaps, and none of the others knows.
  std::optional<Apart> apart;
  if (algorithm.collective == Collective::bcast && with_gaps) {
    std::uint32_t* const dense = me == root ? send.data() : recv.data();
    call.gaps = apart.emplace(count, dense).laid();
    std::fill_n(dense, count, untouched);
  }
  if (!run(context, algorithm, call)) {
    // Somebody's buffers are private; then nothing has been moved, on any member.
    for (const auto& row : algorithms(algorithm.collective)) {
      if (row.reach != staged || !row.applies(context.shape(), call)) continue;
      row.run(context, call);
      break;
    }
  }
  auto expect = [&](std::size_t i, std::uint32_t want) {
    if (result[i] == want) return true;
    std::fprintf(stderr, "%s:%s rank %d of %d, count %zu, root %d%s: element %zu is %u, not %u\n",
                 name(algorithm.collective), algorithm.name, me, p, count, root, in_place ? ", in place" : "", i,
                 result[i], want);
    return false;
  };
  bool good = true;
  if (apart && !apart->collect(me == root ? send.data() : recv.data())) {
    std::fprintf(stderr, "%s:%s wrote between elements\n", name(algorithm.collective), algorithm.name);
    good = false;
  }
  const std::size_t got = op.gets.amount == Amount::part ? part.size() : count * op.gets.blocks(me, p, root);
  for (std::size_t i = 0; i < got && good; ++i)
    good = expect(i, expected(op, me, p, round, root, count, i, part.begin));
  for (std::size_t i = got; i < all && result == recv.data() && good; ++i) good = expect(i, untouched);
  if (recv[all] != untouched) {
    std::fprintf(stderr, "%s:%s wrote past the end\n", name(algorithm.collective), algorithm.name);
    good = false;
  }
  return good;
}

bool random_calls(Process& process, PageBootstrap& bootstrap, int rank, int size, int rounds) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) {
    std::fprintf(stderr, "%s\n", team.error().text.c_str());
    return false;
  }
  std::mt19937 same{unsigned(size)}, own{unsigned(rank) * 77 + 1};
  constexpr std::size_t counts[] = {1, 2, 12, 13, 100, 1000, 1024, 1025, 5000, 16384, 16385, 40000, 70000};
  for (int round = 0; round < rounds; ++round) {
    const auto rows = algorithms(Collective(same() % collective_count));
    const auto& algorithm = rows[same() % rows.size()];
    const std::size_t count = counts[same() % (same() % 4 ? 7 : 13)];
    const int root = int(same() % unsigned(size));
    const bool in_place = same() % 3 == 0;
    // Mostly all members' buffers are mapped or all are private; sometimes each is what it is.
    const unsigned kind = unsigned(same() % 5);
    const bool mapped = kind < 3 || (kind == 3 && own() % 2);
    if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
    if (!call_and_check((*team)->context(), algorithm, round, count, root, in_place, mapped, own() % 5 < 2))
      return false;
  }
  Team::close(std::move(*team));
  return true;
}

class Processes : public ::testing::TestWithParam<int> {};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int rounds = 300;
#else
constexpr int rounds = 2000;
#endif

void expect_random_calls(int ranks, int rounds, const Settings& settings = {}) {
  auto body = [&](Process& process, PageBootstrap& bootstrap, int rank, int size) {
    return random_calls(process, bootstrap, rank, size, rounds);
  };
  EXPECT_EQ(0, run_members(ranks, 120, body, settings));
}

TEST_P(Processes, RandomCallsOfEveryAlgorithm) { expect_random_calls(GetParam(), rounds); }

TEST_P(Processes, RandomCallsInGroups) {
  Settings settings;
  settings.machine.cores = GetParam() > 4 ? 3 : 2;
  expect_random_calls(GetParam(), rounds / 4, settings);
}

// Groups of two, packages of four: trees of three levels.
TEST_P(Processes, RandomCallsAlongTrees) {
  Settings settings;
  settings.meeting = Meeting::tree;
  settings.machine.cores = 2;
  settings.machine.sockets = 2;
  settings.machine.cpus = 8;
  for (const auto wait : {WaitStyle::automatic, WaitStyle::sleep}) {
    settings.wait = wait;
    expect_random_calls(GetParam(), rounds / 4, settings);
  }
}

TEST_P(Processes, RandomCallsByFlags) {
  Settings settings;
  settings.meeting = Meeting::flags;
  expect_random_calls(GetParam(), rounds / 10, settings);
}

TEST_P(Processes, TheyMaySleepInEveryWait) {
  Settings settings;
  settings.wait = WaitStyle::sleep;
  expect_random_calls(GetParam(), rounds / 10, settings);
}

INSTANTIATE_TEST_SUITE_P(Collectives, Processes, ::testing::Values(2, 3, 4, 5, 7, 8, 9));

// The same operands give the same bits by every algorithm: from left to right in rank order.
TEST(Association, IsFixed) {
  EXPECT_EQ(0, run_members(5, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              bool good = true;
              for (const std::size_t count : {3, 500, 3000, 30000}) {
                auto input = [](int r, std::size_t i) {
                  return 1.0 / double(r * 1000 + int(i % 997) + 1) * (r % 2 ? 1e9 : 1);
                };
                Array sent(process, 2 * count, true), received(process, 2 * count, true);
                auto* const send = reinterpret_cast<double*>(sent.data());
                auto* const recv = reinterpret_cast<double*>(received.data());
                std::vector<double> expected(count);
                for (std::size_t i = 0; i < count; ++i) {
                  send[i] = input(rank, i);
                  expected[i] = input(0, i);
                  for (int r = 1; r < size; ++r) expected[i] += input(r, i);
                }
                for (const auto& row : algorithms(Collective::allreduce)) {
                  Call call{Collective::allreduce, count * 8, send, recv};
                  call.count = count;
                  call.type = reducing::Type::f64;
                  call.fold = reducing::fold(call.op, call.type);
                  if (!row.applies((*team)->shape(), call)) continue;
                  std::fill_n(recv, count, 0);
                  good &= run((*team)->context(), row, call);
                  good &= std::equal(expected.begin(), expected.end(), recv);
                }
              }
              return good;
            }));
}

#ifndef __SANITIZE_THREAD__  // its kernels do not stream
// Copies whose working set exceeds the shared cache bypass it, by every path that copies.
TEST(Streaming, RunsBeyondTheCache) {
  Settings settings;
  settings.machine.cache = 1 << 20;
  EXPECT_EQ(0, run_processes(
                   3, 60,
                   [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                     auto team = creation::create_team(process, rank, size, bootstrap);
                     if (!team) return false;
                     bool good = true;
                     for (const std::size_t count : {std::size_t{1} << 14, std::size_t{3} << 18}) {
                       for (const auto which : {Collective::bcast, Collective::allgather, Collective::alltoall,
                                                Collective::gather, Collective::scatter}) {
                         for (const auto& row : algorithms(which)) {
                           const Call call{which, count * 4};
                           if (!row.applies((*team)->shape(), call) || row.share) continue;
                           const auto before = copying::streamed_lines();
                           good &= call_and_check((*team)->context(), row, 1, count, 0, false, true);
                           const bool copies = rank > 0 || which == Collective::allgather ||
                                               which == Collective::alltoall ||
                                               (which == Collective::gather && !row.reach);
                           if (which == Collective::gather && rank > 0 && !row.reach) continue;
                           const bool streamed = copying::streamed_lines() > before;
                           const bool never = std::string_view(row.name) == "pull-temporal";
                           if (never && streamed)
                             std::fprintf(stderr, "%s:%s streams\n", name(which), row.name), good = false;
                           if (count > 1 << 18 && copies && !never && !streamed)
                             std::fprintf(stderr, "%s:%s does not stream\n", name(which), row.name), good = false;
                           if (count < 1 << 18 && which != Collective::alltoall && streamed)
                             std::fprintf(stderr, "%s:%s streams\n", name(which), row.name), good = false;
                         }
                       }
                     }
                     return good;
                   },
                   settings));
}
#endif

TEST(Team, ManyAreCheapAndLeaveNothing) {
  EXPECT_EQ(0, run_members(3, 60, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              std::size_t at_first = 0;
              for (int i = 0; i < 300; ++i) {
                auto team = creation::create_team(process, rank, size, bootstrap);
                if (!team) return false;
                // Through slots, and through copy buffers of the team's own.
                const auto& row = algorithms(Collective::allreduce)[std::size_t(i) % 4];
                if (!call_and_check((*team)->context(), row, i, 10, 0, false)) return false;
                Team::close(std::move(*team));
                if (i == 20) at_first = process.arena().in_use();
              }
              bootstrap.meet();
              return process.arena().in_use() <= at_first + (8 << 20);
            }));
}

TEST(Team, ReportsADeadMember) {
  EXPECT_EQ(1, run_processes(3, 30, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              auto team = creation::create_team(process, rank, size, bootstrap);
              if (!team) return false;
              const Call call{Collective::barrier};
              for (int i = 0;; ++i) {
                if (rank == 1 && i == 100) raise(SIGKILL);
                try {
                  choosing::Chooser chooser;
                  chooser.serve(**team);
                  chooser.perform((*team)->context(), call);
                } catch (const team::Broken& broken) {
                  return std::string(broken.what()).find("rank 1") != std::string::npos;
                }
              }
            }));
}

TEST(Team, ComparesCallsWhenAsked) {
  Settings settings;
  settings.check = true;
  EXPECT_EQ(0, run_members(
                   3, 30,
                   [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                     auto team = creation::create_team(process, rank, size, bootstrap);
                     if (!team) return false;
                     Call call{Collective::bcast, 8};
                     call.root = rank == 2 ? 1 : 0;
                     try {
                       compare_calls((*team)->context(), call);
                     } catch (const team::Broken& broken) {
                       const std::string text = broken.what();
                       return text.find("root 0") != std::string::npos && text.find("root 1") != std::string::npos &&
                              text.find("rank 2") != std::string::npos;
                     }
                     return false;
                   },
                   settings));
}

// Of the rows that apply, the cheapest; estimates are positive and grow with the length.
TEST(Choosing, EstimatesGrow) {
  for (const int p : {2, 3, 8, 9, 32, 192}) {
    for (const double cpus : {2.0, 192.0}) {
      Machine machine;
      machine.cpus = cpus;
      machine.cache = 32 << 20;
      const auto shape = team::shape_for(p, machine);
      for (std::size_t c = 1; c < collective_count; ++c) {
        for (const auto& row : algorithms(Collective(c))) {
          double before = 0;
          for (std::size_t bytes = 8; bytes <= 64 << 20; bytes *= 2) {
            Call call{Collective(c), bytes};
            call.count = bytes / 8;
            const double cost = row.cost(shape, call);
            EXPECT_GE(cost, before) << name(Collective(c)) << ":" << row.name << " p " << p << " bytes " << bytes;
            EXPECT_GT(cost, 0);
            before = cost;
          }
        }
      }
    }
  }
}

TEST(Override, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(choosing::complain_about("allreduce:partitioned;alltoall:^slots"), "");
  EXPECT_EQ(choosing::complain_about(""), "");
  EXPECT_NE(choosing::complain_about("allreduce:partitoned").find("partitioned"), std::string::npos);
  EXPECT_NE(choosing::complain_about("allreduce:part").find("partitioned"), std::string::npos);
  EXPECT_NE(choosing::complain_about("alreduce:slots").find("allreduce"), std::string::npos);
  EXPECT_NE(choosing::complain_about("barrier:^slots").find("leaves no algorithm"), std::string::npos);
}

}  // namespace
}  // namespace nearfield::collectives
