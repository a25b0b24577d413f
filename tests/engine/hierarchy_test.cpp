// Collectives over several nodes: a team for each pretended node, and a network in shared memory that
// delivers late.
#include <gtest/gtest.h>

#include <random>

#include "engine/hierarchy/chooser.hpp"
#include "engine/hierarchy/groups.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::hierarchy {
namespace {

using collectives::Amount;
using collectives::Operation;
using testing::Page;
using testing::PageBootstrap;

constexpr int most_ranks = 10, most_lanes = most_ranks;
constexpr std::size_t room = 4 << 20;

template <class T>
T* shared(std::size_t count) {
  void* const at =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<T*>(at);
}

// What a member gives, one transfer after another. Written by it, read by the others of its lane.
struct Given {
  static constexpr unsigned deep = 8;
  struct Entry {
    std::atomic<std::uint64_t> number;  // of the transfer, once `data` is there
    std::atomic<int> taken;             // by members of the lane
    std::size_t at[most_ranks];
    std::byte data[room];
  } entry[deep];
};
struct Wires {
  Given lane[most_lanes][most_ranks];
  Given node[most_ranks][most_ranks];  // of the ranks of a node
};

class Wired final : public Transport {
 public:
  Wired(Wires& wires, const Placement& placement, int rank)
      : wires_(wires), placement_(placement), rank_(rank), dice_(unsigned(rank) + 7) {}
  void open(int) override {}
  std::size_t longest() const override { return room; }

  void start(unsigned slot, int lane, const LaneTransfer& t) override {
    Under& u = under_[slot];
    const int node = placement_.node_of(rank_);
    u.lane = lane == within_node ? wires_.node[node] : wires_.lane[lane];
    u.me = lane == within_node ? placement_.local_of(rank_) : node;
    u.members = lane == within_node ? placement_.ranks_on(node) : placement_.nodes();
    u.number = ++numbers_[lane + 1];
    u.t = t;
    u.bytes.assign(t.into.bytes.begin(), t.into.bytes.end());
    u.at.assign(t.into.at.begin(), t.into.at.end());
    u.busy = true;
    u.looks = int(dice_() % 20);
    Given::Entry& mine = u.lane[u.me].entry[u.number % Given::deep];
    while (u.number > Given::deep && mine.taken.load() < u.members) sched_yield();
    mine.taken.store(0);
    const bool root = u.me == t.root;
    if (t.move == Move::bcast && root) std::memcpy(mine.data, t.to, t.bytes);
    if (t.move == Move::gather || t.move == Move::allgather) std::memcpy(mine.data, t.one, t.bytes);
    if (t.move == Move::alltoall || (t.move == Move::scatter && root)) {
      std::size_t end = 0;
      for (std::size_t i = 0; i < t.from.at.size(); ++i) {
        mine.at[i] = end;
        std::memcpy(mine.data + end, t.from.buffer + t.from.at[i], t.from.bytes[i]);
        end += t.from.bytes[i];
      }
    }
    mine.number.store(u.number);
  }

  bool done(unsigned slot) override {
    Under& u = under_[slot];
    if (!u.busy) return true;
    if (u.looks-- > 0) return false;
    const LaneTransfer& t = u.t;
    auto given = [&](int member) -> Given::Entry& { return u.lane[member].entry[u.number % Given::deep]; };
    for (int i = 0; i < u.members; ++i)
      if (given(i).number.load() != u.number) return false;
    if (t.move == Move::bcast && u.me != t.root) std::memcpy(t.to, given(t.root).data, t.bytes);
    if (t.move == Move::scatter) std::memmove(t.to, given(t.root).data + given(t.root).at[u.me], t.bytes);
    if (t.move == Move::allgather || (t.move == Move::gather && u.me == t.root))
      for (std::size_t i = 0; i < u.at.size(); ++i)
        std::memcpy(t.into.buffer + u.at[i], given(int(i)).data, u.bytes[i]);
    if (t.move == Move::alltoall)
      for (std::size_t i = 0; i < u.at.size(); ++i)
        std::memcpy(t.into.buffer + u.at[i], given(int(i)).data + given(int(i)).at[u.me], u.bytes[i]);
    for (int i = 0; i < u.members; ++i) given(i).taken.fetch_add(1);
    u.busy = false;
    return true;
  }

 private:
  struct Under {
    Given* lane;
    int me, members, looks;
    std::uint64_t number;
    LaneTransfer t;
    std::vector<std::size_t> bytes, at;
    bool busy = false;
  } under_[slots];
  Wires& wires_;
  const Placement& placement_;
  const int rank_;
  std::uint64_t numbers_[most_lanes + 1] = {};
  std::minstd_rand dice_;
};

std::uint32_t value(int r, int round, std::size_t i) {
  return std::uint32_t(r * 2654435761u + unsigned(round) * 40503u + i * 97u);
}
std::uint32_t expected(const Operation& op, int me, int size, int round, int root, std::size_t count, std::size_t i) {
  const std::size_t at = i % count + (op.gives.amount == Amount::blocks ? count * std::size_t(me) : 0);
  if (!op.reduces()) return value(op.gives.who == collectives::Who::root ? root : int(i / count), round, at);
  std::uint32_t total = 0;
  for (int r = 0; r < size; ++r) total += value(r, round, at);
  return total;
}

// One call; false (with a line on standard error) where an element is wrong.
bool call_and_check(Hierarchy& s, const HierarchyAlgorithm& row, int round, std::size_t count, int root,
                    bool in_place) {
  constexpr std::uint32_t untouched = 0xdeadbeef;
  const Operation& op = collectives::operation(row.collective);
  const int p = s.size(), me = s.rank();
  const std::size_t all = count * std::size_t(p);
  std::vector<std::uint32_t> send(all), recv(all + 1, untouched);
  for (std::size_t i = 0; i < all; ++i) send[i] = value(me, round, i);
  Call call{row.collective, count * 4};
  call.root = root;
  call.count = count;
  call.type = reducing::Type::u32;
  call.op = reducing::Op::sum;
  call.fold = reducing::fold(call.op, call.type);
  call.send = send.data();
  call.recv = recv.data();
  std::uint32_t* result = recv.data();
  if (in_place && op.gives.has(me, root) && op.gets.has(me, root)) {
    const std::size_t at = op.in_place_at(me, count);
    if (op.in_place == collectives::InPlace::own_block_of_recv) {
      std::copy_n(send.data(), count, recv.data() + at);
      call.send = recv.data() + at;
    } else if (op.in_place != collectives::InPlace::never) {
      call.recv = result = send.data() + at;
    }
  }
  if (!row.run || !row.applies(s.shape(), call)) return true;
  row.run(s, call);
  const std::size_t got = count * op.gets.blocks(me, p, root);
  for (std::size_t i = 0; i < got; ++i) {
    const std::uint32_t want = expected(op, me, p, round, root, count, i);
    if (result[i] == want) continue;
    std::fprintf(stderr, "%s:%s rank %d of %d, count %zu, root %d%s: element %zu is %u, not %u\n",
                 collectives::name(row.collective), row.name, me, p, count, root, in_place ? ", in place" : "", i,
                 result[i], want);
    return false;
  }
  for (std::size_t i = got; i <= all && result == recv.data(); ++i)
    if (recv[i] != untouched) {
      std::fprintf(stderr, "%s:%s rank %d of %d, count %zu, root %d: element %zu was overwritten\n",
                   collectives::name(row.collective), row.name, me, p, count, root, i);
      return false;
    }
  return true;
}

// In members that live on nodes as `home` says.
int run_over_nodes(std::vector<int> home, const std::function<bool(Hierarchy&)>& body) {
  auto* const pages = shared<Page>(home.size());
  auto* const wires = shared<Wires>(1);
  if (!pages || !wires) return -1;
  const Placement placement(home);
  const int failed =
      testing::run_members(int(home.size()), 100, [&](team::Process& node, PageBootstrap&, int rank, int) {
        const int on = placement.node_of(rank), locals = placement.ranks_on(on);
        Hierarchy::Near near;
        if (locals > 1) {
          PageBootstrap bootstrap(pages[on], placement.local_of(rank), locals);
          auto team = creation::create_team(node, placement.local_of(rank), locals, bootstrap);
          if (!team) return false;
          near.team = std::move(*team);
          near.chooser = std::make_unique<choosing::Chooser>();
          near.chooser->serve(*near.team);
        }
        Hierarchy hierarchy(node, placement, rank, std::move(near), std::make_unique<Wired>(*wires, placement, rank));
        HierarchyShape shape = hierarchy.shape();
        bcast_from_first(hierarchy, &shape, sizeof shape);
        hierarchy.set_shape(shape);
        return body(hierarchy);
      });
  munmap(pages, home.size() * sizeof(Page));
  munmap(wires, sizeof(Wires));
  return failed;
}

const std::vector<std::vector<int>> placements = {
    {0, 1},
    {0, 0, 1, 1},
    {0, 1, 0, 1},
    {0, 0, 1},
    {0, 1, 1, 1},
    {0, 0, 1, 1, 2, 2},
    {0, 1, 2, 0, 1, 2},
    {2, 0, 0, 1, 2, 1},
    {0, 1, 1, 2},
    {0, 0, 0, 1, 1, 1},
    {0, 1, 2, 3},
    {0, 0, 0, 0, 1, 1, 1, 1},
    {1, 0, 0, 1, 0, 0, 1},
    {0, 0, 0, 0, 0, 1, 1, 1, 1, 1},
    {0, 1, 1, 0, 2, 2, 2, 1, 0},
};

class Nodes : public ::testing::TestWithParam<std::vector<int>> {};

TEST_P(Nodes, RandomCallsOfEveryRow) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int rounds = 60;
#else
  constexpr int rounds = 400;
#endif
  EXPECT_EQ(0, run_over_nodes(GetParam(), [&](Hierarchy& hierarchy) {
              std::minstd_rand same(5);
              constexpr std::size_t counts[] = {1, 2, 3, 5, 13, 100, 1000, 1024, 1025, 2500, 5000, 20000};
              for (int round = 0; round < rounds; ++round) {
                std::span<const HierarchyAlgorithm> rows;
                while (rows.empty()) rows = rows_of(Collective(same() % collectives::collective_count));
                const HierarchyAlgorithm& row = rows[same() % rows.size()];
                const std::size_t count = counts[same() % (same() % 4 ? 9 : 12)];
                const int root = int(same() % unsigned(hierarchy.size()));
                if (!call_and_check(hierarchy, row, round, count, root, same() % 3 == 0)) return false;
              }
              return true;
            }));
}

// Others of its node cannot reach what it has then.
TEST(Shortage, OfOneLeaderLeavesAllRowsOfAlltoallRight) {
  for (const std::vector<int>& home : {std::vector{0, 0, 0, 1, 1, 1}, {0, 1, 1, 0, 0, 1, 1}})
    EXPECT_EQ(0, run_over_nodes(home, [&](Hierarchy& hierarchy) {
                if (hierarchy.rank() == 0)
                  testing::run_out_of_memory(hierarchy.home()), testing::use_up(hierarchy.home());
                int number = 0;
                for (const HierarchyAlgorithm& row : rows_of(Collective::alltoall))
                  for (const std::size_t count : {1, 100, 3000})
                    if (!call_and_check(hierarchy, row, number++, count, 0, count == 100)) return false;
                return true;
              }));
}

// All rows but the one that is for that combine floating-point numbers in one order for a placement.
TEST_P(Nodes, SumsHaveTheSameBitsByEveryRow) {
  EXPECT_EQ(0, run_over_nodes(GetParam(), [&](Hierarchy& hierarchy) {
              for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{4000}, std::size_t{20000}}) {
                std::vector<float> send(count), first, in_order(count);
                for (std::size_t i = 0; i < count; ++i)
                  send[i] = float(value(hierarchy.rank(), 1, i)) / float(1 + value(hierarchy.rank(), 2, i) % 1000);
                Call call{Collective::allreduce, count * 4};
                call.count = count;
                call.type = reducing::Type::f32;
                call.fold = reducing::fold(call.op, call.type);
                call.send = send.data();
                for (const HierarchyAlgorithm& row : rows_of(Collective::allreduce)) {
                  if (!row.run || !row.applies(hierarchy.shape(), call)) continue;
                  std::vector<float> recv(count);
                  call.recv = recv.data();
                  row.run(hierarchy, call);
                  if (row.run == reduce_in_order) {
                    std::vector<float> want(count);
                    for (std::size_t i = 0; i < count; ++i)
                      for (int r = 0; r < hierarchy.size(); ++r) {
                        const float operand = float(value(r, 1, i)) / float(1 + value(r, 2, i) % 1000);
                        want[i] = r ? want[i] + operand : operand;
                      }
                    if (recv != want) return false;
                  } else if (first.empty()) {
                    first = recv;
                  } else if (recv != first) {
                    return false;
                  }
                }
              }
              return true;
            }));
}

// The host's row here is one that takes longer.
TEST(Choosing, TriesAllRowsAndAgrees) {
  EXPECT_EQ(0, run_over_nodes({0, 0, 1, 1}, [&](Hierarchy& hierarchy) {
              HierarchyChooser chooser;
              chooser.serve(Choosing::trial, "");
              std::vector<std::uint32_t> send(100, 1), recv(100);
              Call call{Collective::allreduce, 400};
              call.count = 100;
              call.type = reducing::Type::u32;
              call.fold = reducing::fold(call.op, call.type);
              call.send = send.data();
              call.recv = recv.data();
              int by_host = 0;
              const HierarchyAlgorithm* row = nullptr;
              for (int i = 0; i < 1500; ++i) {
                std::fill(recv.begin(), recv.end(), 0u);
                row = chooser.perform(hierarchy, call, [&] {
                  ++by_host;
                  usleep(3000);
                  reduce_by_leaders(hierarchy, call);
                });
                if (recv != std::vector<std::uint32_t>(100, 4)) return false;
              }
              return by_host > 0 && by_host < 100 && row != nullptr;
            }));
}

TEST(Choosing, KnowsTheNamesOfBothTables) {
  EXPECT_EQ(complain_about("allreduce:lanes;bcast:^leader"), "");
  EXPECT_EQ(complain_about("allreduce:slots,lanes"), "");
  EXPECT_NE(complain_about("allreduce:lane").find("lanes"), std::string::npos);
  EXPECT_NE(choosing::complain_about("allreduce:lanes"), "");
}

INSTANTIATE_TEST_SUITE_P(Placements, Nodes, ::testing::ValuesIn(placements));

}  // namespace
}  // namespace nearfield::hierarchy
