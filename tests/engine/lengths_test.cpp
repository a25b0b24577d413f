// Wrong programs: one member of a call has another length than the others. By every algorithm of every operation, in
// every form, whoever gets something that not all have alike ends with an error that names ranks and lengths; nobody
// has a wrong result without one, nothing behind a result is written to, and nobody waits for good.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/choosing/queued_call.hpp"
#include "engine/collectives/pieces/rounds.hpp"
#include "engine/collectives/table.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::collectives {
namespace {

using context::CollectiveContext;
using team::Process;
using team::Team;
using testing::PageBootstrap;
using testing::run_members;

constexpr std::uint32_t untouched = 0xdeadbeef;
std::uint32_t value(int r, std::size_t i) { return std::uint32_t(r * 7919 + int(i % 1000) + 1); }

// Arrays in this process's segment, where peers reach them.
class Array {
 public:
  Array(Process& process, std::size_t count) : process_(process), offset_(*process.arena().allocate(count * 4, 64)) {
    data_ = reinterpret_cast<std::uint32_t*>(process.segment().base() + offset_);
    std::fill_n(data_, count, untouched);
  }
  ~Array() { process_.arena().free(offset_); }
  std::uint32_t* data() { return data_; }

 private:
  Process& process_;
  const std::size_t offset_;
  std::uint32_t* data_;
};

struct Case {
  Collective collective;
  std::size_t shorter, longer;  // elements
  int odd;                      // the rank that has another length
  bool odd_is_longer;
  int root;
  bool tolerates = false;  // who gets less than expected from a root, or as one, has no error

  std::size_t count(int rank) const { return (rank == odd) == odd_is_longer ? longer : shorter; }
  // Whether member `me` gets something that others have in another length.
  bool must_fail(int me, int size) const {
    const Operation& op = operation(collective);
    if (!op.gets.has(me, root)) return false;
    if (op.scans()) return me > 0 && odd <= me;
    const auto clash = [&](int giver, int getter) {
      return count(giver) > count(getter) || (count(giver) < count(getter) && !tolerates);
    };
    if (op.gives.who == Who::root) return clash(root, me);
    if (op.rooted()) {
      for (int r = 0; r < size; ++r)
        if (clash(r, me)) return true;
      return false;
    }
    return true;
  }
  std::string describe(const char* how, int me, int size) const {
    return std::string(name(collective)) + ":" + how + " rank " + std::to_string(me) + " of " + std::to_string(size) +
           ", root " + std::to_string(root) + ", rank " + std::to_string(odd) + " has " + std::to_string(count(odd)) +
           " of " + std::to_string(count(odd ? 0 : 1));
  }
};

// Makes our part of the call by perform(call), and judges what has become of it.
template <class Perform>
bool right(Process& process, const Case& c, const char* how, int me, int size, Perform perform) {
  const Operation& op = operation(c.collective);
  const std::size_t count = c.count(me), all = c.longer * std::size_t(size);
  Array send(process, all), recv(process, all + 1);
  for (std::size_t i = 0; i < all; ++i) send.data()[i] = value(me, i);
  Call call{c.collective, count * 4, send.data(), recv.data(), c.root, count};
  call.type = reducing::Type::u32;
  call.fold = reducing::fold(call.op, call.type);
  std::string text;
  try {
    perform(call);
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  const auto wrong = [&](const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", c.describe(how, me, size).c_str(), what.c_str());
    return false;
  };
  const std::size_t got =
      op.gets.amount == Amount::part ? part_of(call, size, me).size() : count * op.gets.blocks(me, size, c.root);
  for (std::size_t i = got; i <= all; ++i)
    if (recv.data()[i] != untouched) return wrong("something behind the result is written to");
  if (!text.empty()) {
    const auto names = [&](const std::string& what) { return text.find(what) != std::string::npos; };
    const bool good = names("rank " + std::to_string(c.odd)) && names(std::to_string(4 * c.shorter) + " bytes") &&
                      names(std::to_string(4 * c.longer) + " bytes");
    return good || wrong("the error names not who has which length: " + text);
  }
  if (c.must_fail(me, size)) return wrong("there is no error");
  if (op.gives.who == Who::root && op.gets.has(me, c.root)) {
    const std::size_t sent = std::min(count, c.count(c.root)), at = op.gives.amount == Amount::blocks ? me * sent : 0;
    for (std::size_t i = 0; i < count; ++i)
      if (recv.data()[i] != (i < sent ? value(c.root, at + i) : untouched)) return wrong("another result");
  }
  if (op.rooted() && !op.reduces() && op.gives.who == Who::all && me == c.root)
    for (int r = 0; r < size; ++r)
      for (std::size_t i = 0; i < count; ++i)
        if (recv.data()[std::size_t(r) * count + i] != (i < c.count(r) ? value(r, i) : untouched))
          return wrong("another result");
  if (op.scans() && op.gets.has(me, 0))
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t sum = 0;
      for (int r = 0; r < me + (op.combines == Combines::up_to_own); ++r) sum += value(r, i);
      if (recv.data()[i] != sum) return wrong("another result");
    }
  return true;
}

bool in_step(CollectiveContext& context) {
  std::uint32_t one = 1, sum = 0;
  Call call{Collective::allreduce, 4, &one, &sum, 0, 1};
  call.type = reducing::Type::u32;
  call.fold = reducing::fold(call.op, call.type);
  context.calls.enter_collective(pack(call));
  run(context, algorithms(Collective::allreduce)[0], call);
  context.calls.leave();
  return sum == std::uint32_t(context.size()) || (std::fprintf(stderr, "out of step\n"), false);
}

void each_case(int size, Collective collective, std::size_t shorter, std::size_t longer,
               const std::function<void(const Case&)>& body) {
  const int roots = operation(collective).rooted() ? std::min(size, 2) : 1;
  for (int root = 0; root < roots; ++root)
    for (const bool odd_is_longer : {false, true})
      body({collective, shorter, longer, (root == 0) == odd_is_longer ? size - 1 : 0, odd_is_longer, root});
}

constexpr std::size_t pairs[][2] = {{5, 6}, {100, 150}, {800, 1000}, {4000, 4096}, {20000, 90000}};

// A team whose members may break it off.
struct Teams {
  Process& process;
  PageBootstrap& bootstrap;
  const int rank, size;
  std::unique_ptr<Team> team{};

  // Once all have made the call before. False: they are out of step.
  bool next() {
    bootstrap.meet();
    bool broken = false;
    for (int r = 0; team && r < size; ++r) broken |= team->words(r).broken_off.load(std::memory_order_acquire) != 0;
    bootstrap.meet();
    if (broken) Team::close(std::move(team));
    if (team) return in_step(team->context());
    team = std::move(*creation::create_team(process, rank, size, bootstrap));
    return true;
  }
  ~Teams() {
    if (team) Team::close(std::move(team));
  }
};

bool by_rows(Process& process, PageBootstrap& bootstrap, int rank, int size, bool along_trees) {
  Teams teams{process, bootstrap, rank, size};
  bool all_good = teams.next();
  for (std::size_t o = 1; o < collective_count; ++o)
    for (const auto& row : algorithms(Collective(o)))
      for (const auto& [shorter, longer] : pairs) {
        const auto& shape = teams.team->shape();
        Call a{Collective(o), 4 * shorter}, b{Collective(o), 4 * longer};
        a.count = shorter, b.count = longer;
        if ((std::string_view(row.name) == "tree") != along_trees) continue;
        if (!row.applies(shape, a) || !row.applies(shape, b)) continue;
        each_case(size, Collective(o), shorter, longer, [&](const Case& c) {
          CollectiveContext& context = teams.team->context();
          all_good &= right(process, c, row.name, rank, size, [&](const Call& call) {
            context.calls.enter_collective(pack(call));
            const struct Leaves {
              CollectiveContext& context;
              ~Leaves() { context.calls.leave(); }
            } leaves{context};
            if (!run(context, row, call)) std::fprintf(stderr, "out of reach\n");
          });
          all_good &= teams.next();
        });
      }
  return all_good;
}

class Members : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lengths, Members, ::testing::Values(2, 3, 5));

TEST_P(Members, AreNamedByEveryRow) {
  EXPECT_EQ(0, run_members(GetParam(), 120, [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
              return by_rows(process, bootstrap, rank, size, false);
            }));
}

TEST(Lengths, AreNamedAlongTrees) {
  Settings settings;
  settings.meeting = Meeting::tree;
  EXPECT_EQ(0, run_members(
                   5, 120,
                   [](Process& process, PageBootstrap& bootstrap, int rank, int size) {
                     return by_rows(process, bootstrap, rank, size, true);
                   },
                   settings));
}

// Lengths for which members choose other rows than each other: they wait for each other in vain.
constexpr std::size_t shorter_by_far = 5, longer_by_far = 60000;

bool by_choice(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  Teams teams{process, bootstrap, rank, size};
  bool all_good = true;
  for (std::size_t o = 1; o < collective_count; ++o) {
    const Case c{Collective(o), shorter_by_far, longer_by_far, size - 1, (o + unsigned(size)) % 2 == 0, 0};
    teams.next();
    CollectiveContext& context = teams.team->context();
    choosing::Chooser chooser;
    chooser.serve(context.team());
    const bool good = right(process, c, "chosen", rank, size, [&](const Call& call) {
      context.calls.enter_collective(pack(call));
      const struct Leaves {
        CollectiveContext& context;
        ~Leaves() { context.calls.leave(); }
      } leaves{context};
      chooser.perform(context, call);
    });
    all_good &= good;
    bootstrap.meet();
    Team::close(std::move(teams.team));
  }
  return all_good;
}
TEST_P(Members, AreNamedWhereTheyChooseOtherRows) { EXPECT_EQ(0, run_members(GetParam(), 120, by_choice)); }

bool overlapping(Process& process, PageBootstrap& bootstrap, int rank, int size) {
  Teams teams{process, bootstrap, rank, size};
  bool all_good = true;
  for (const auto& [shorter, longer] : {std::array<std::size_t, 2>{5, 6}, {600, 1000}, {5, 60000}})
    for (std::size_t o = 1; o < collective_count; ++o) {
      const Case c{Collective(o), shorter, longer, size - 1, (o + unsigned(size)) % 2 == 0, 0};
      teams.next();
      choosing::FurtherChoosers choosers;
      choosing::make_choosers(choosers, *teams.team);
      const bool good = right(process, c, "issued", rank, size, [&](const Call& call) {
        choosing::QueuedCall issued(call, choosers);
        teams.team->contexts().issue(issued);
        while (!issued.complete())
          if (!process.progress().poll()) sched_yield();
        if (issued.error()) std::rethrow_exception(issued.error());
      });
      all_good &= good;
      bootstrap.meet();
      Team::close(std::move(teams.team));
    }
  return all_good;
}
TEST_P(Members, AreNamedInCallsThatOverlap) { EXPECT_EQ(0, run_members(GetParam(), 120, overlapping)); }

}  // namespace
}  // namespace nearfield::collectives
