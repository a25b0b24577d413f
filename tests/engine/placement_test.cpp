// On which NUMA nodes memory lies: the grammar, the decision on machines that are described here, and what this machine
// makes of it.
#include "engine/memory/placement.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "engine/memory/arena.hpp"
#include "engine/memory/copy_buffers.hpp"
#include "engine/memory/numa.hpp"
#include "engine/memory/placer.hpp"
#include "tests/engine/child.hpp"

namespace nearfield::memory {
namespace {

constexpr std::size_t MiB = 1 << 20, GiB = 1 << 30;

CpuSet cpus(int first, int last) {
  CpuSet set;
  for (int cpu = first; cpu <= last; ++cpu) set.bits.set(std::size_t(cpu));
  return set;
}

Wish wish(std::string_view words) {
  auto read = parse_wish(words);
  EXPECT_TRUE(read) << words;
  return read ? *read : Wish{};
}

// Two packages with DRAM, each with high-bandwidth memory beside it: nodes 2 and 3. As Linux publishes it, by the best
// initiators alone.
std::vector<MemoryNode> two_packages_with_hbm() {
  const CpuSet a = cpus(0, 3), b = cpus(4, 7);
  return {{0, 64 * GiB, a, {{a, 100'000}}, {{a, 90}}, {{0, 10}, {1, 21}, {2, 13}, {3, 23}}},
          {1, 63 * GiB, b, {{b, 100'000}}, {{b, 90}}, {{0, 21}, {1, 10}, {2, 23}, {3, 13}}},
          {2, 16 * GiB, a, {{a, 400'000}}, {{a, 120}}, {}},
          {3, 16 * GiB, b, {{b, 400'000}}, {{b, 120}}, {}}};
}

using Numbers = std::vector<int>;

TEST(Grammar, ReadsWhatItDocuments) {
  auto wishes = parse_wishes(
      "fastboxes:bandwidth; copy-buffers : bandwidth,max=512M ;windows:capacity;heap:2,3,"
      "interleave;control:latency,forced;");
  ASSERT_TRUE(wishes) << wishes.error().text;
  auto of = [&](Component c) -> const Wish& { return *wishes->of[std::size_t(c)]; };
  EXPECT_EQ(of(Component::fastboxes).target, Wish::Target::bandwidth);
  EXPECT_EQ(of(Component::copy_buffers).most, 512 * MiB);
  EXPECT_EQ(of(Component::windows).target, Wish::Target::capacity);
  EXPECT_EQ(of(Component::heap).numbers, (Numbers{2, 3}));
  EXPECT_TRUE(of(Component::heap).interleave);
  EXPECT_TRUE(of(Component::control).forced);
  EXPECT_FALSE(of(Component::fastboxes).forced);
  EXPECT_FALSE(wishes->of[std::size_t(Component::alloc_mem)]);
  EXPECT_EQ(wish("interleave").target, Wish::Target::every_node);
}

TEST(Grammar, AllIsForThoseThatAreNotNamed) {
  auto wishes = parse_wishes("all:local;fastboxes:7");
  ASSERT_TRUE(wishes);
  for (std::size_t c = 0; c < component_count; ++c)
    EXPECT_EQ(wishes->of[c]->target, c == 0 ? Wish::Target::numbers : Wish::Target::local);
  EXPECT_TRUE(parse_wishes(";")->empty());
}

TEST(Grammar, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"fastboxes", "is not of the form COMPONENT:PLACE"},
      {"boxes:local", "`boxes` is not one of all, fastboxes, copy-buffers, windows, heap, control, alloc-mem"},
      {"heap:local;heap:2", "`heap` appears twice"},
      {"heap:", "a word is missing"},
      {"heap:local,,forced", "a word is missing"},
      {"heap:fast", "`fast` is not a word of a placement; words are bandwidth"},
      {"heap:forced,max=1G", "names no place"},
      {"heap:local,bandwidth", "`bandwidth` is a second place, but only one is allowed"},
      {"heap:local,2", "`2` is a second place, but only one is allowed"},
      {"heap:2,local", "`local` is a second place, but only one is allowed"},
      {"heap:2,2", "`2` appears twice"},
      {"heap:4096", "`4096` is not the number of a NUMA node"},
      {"heap:-1", "`-1` is not a word"},
      {"heap:local,max=", "a size is a number above 0"},
      {"heap:local,max=0", "a size is a number above 0"},
      {"heap:local,max=1X", "a size is a number above 0"},
      {"heap:local,max=99999999999T", "a size is a number above 0"},
  };
  for (const auto& [text, expected] : wrong) {
    auto read = parse_wishes(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().text.find(expected), std::string::npos) << text << ": " << read.error().text;
  }
}

TEST(NodeOrder, BandwidthIsThatOfOurOwnCpusFirst) {
  const auto nodes = two_packages_with_hbm();
  NodeOrder first = order(wish("bandwidth"), nodes, {cpus(0, 1), 0}),
            second = order(wish("bandwidth"), nodes, {cpus(5, 5), 5});
  EXPECT_EQ(first.asked, (Numbers{2}));
  EXPECT_EQ(first.others, (Numbers{0, 3, 1}));
  EXPECT_EQ(second.asked, (Numbers{3}));
  EXPECT_EQ(second.others, (Numbers{1, 2, 0}));
  EXPECT_TRUE(first.doubt.empty());
  // A rank on all CPUs may use both.
  EXPECT_EQ(order(wish("bandwidth"), nodes, {cpus(0, 7), 6}).asked, (Numbers{3, 2}));
}

// What another package's interconnect leaves of it nobody publishes.
TEST(NodeOrder, AnotherPackagesFastMemoryComesBehindOurOwn) {
  auto nodes = two_packages_with_hbm();
  nodes.pop_back();
  const NodeOrder there = order(wish("bandwidth"), nodes, {cpus(4, 7), 4});
  EXPECT_EQ(there.asked, (Numbers{1}));
  EXPECT_EQ(there.others, (Numbers{2, 0}));
}

TEST(NodeOrder, LatencyLocalAndCapacity) {
  const auto nodes = two_packages_with_hbm();
  const Vantage second{cpus(4, 7), 4};
  EXPECT_EQ(order(wish("latency"), nodes, second).asked, (Numbers{1}));
  EXPECT_EQ(order(wish("latency"), nodes, second).others, (Numbers{3, 0, 2}));
  EXPECT_EQ(order(wish("local"), nodes, second).asked, (Numbers{1}));
  EXPECT_EQ(order(wish("local"), nodes, second).others, (Numbers{3, 0, 2}));
  // 63 and 64 GiB are as much: the nearer counts.
  EXPECT_EQ(order(wish("capacity"), nodes, second).asked, (Numbers{1, 0}));
  EXPECT_EQ(order(wish("capacity"), nodes, second).others, (Numbers{3, 2}));
}

TEST(NodeOrder, NumbersAreTakenAsTheyStand) {
  const auto nodes = two_packages_with_hbm();
  const NodeOrder known = order(wish("3,0"), nodes, {cpus(0, 3), 0}),
                  unknown = order(wish("9,2"), nodes, {cpus(0, 3), 0});
  EXPECT_EQ(known.asked, (Numbers{3, 0}));
  EXPECT_EQ(known.others, (Numbers{2, 1}));
  EXPECT_EQ(unknown.asked, (Numbers{2}));
  EXPECT_EQ(unknown.doubt, "this process has no NUMA node 9, it may use 0, 1, 2, 3");
}

TEST(NodeOrder, WhereNobodySaysAnythingTheNearestIsTakenAndSaidToBe) {
  auto nodes = two_packages_with_hbm();
  for (auto& node : nodes) node.bandwidth.clear();
  const NodeOrder both = order(wish("bandwidth"), nodes, {cpus(4, 7), 4});
  EXPECT_EQ(both.asked, (Numbers{1}));
  EXPECT_NE(both.doubt.find("no NUMA node says its bandwidth"), std::string::npos);
  nodes.resize(1);
  EXPECT_TRUE(order(wish("bandwidth"), nodes, {cpus(0, 0), 0}).doubt.empty()) << "one node is the best there is";
  EXPECT_TRUE(order(wish("bandwidth"), {}, {}).asked.empty());
}

struct Flat {
  std::size_t bytes;
  Numbers nodes;
  bool asked;
  bool operator==(const Flat&) const = default;
};
std::vector<Flat> divided(std::string_view words, const NodeOrder& order, std::size_t bytes,
                          std::vector<std::size_t> rooms) {
  std::vector<Flat> all;
  const Wish asked = wish(words);
  for (const Piece& piece : divide(asked, order, bytes, asked.most, [&](int node) { return rooms[std::size_t(node)]; }))
    all.push_back({piece.bytes, piece.nodes, piece.asked});
  return all;
}

TEST(Divide, FillsOneNodeAfterAnother) {
  const NodeOrder order{{2}, {0, 1}, {}};
  EXPECT_EQ(divided("bandwidth", order, 8 * MiB, {GiB, GiB, GiB}), (std::vector<Flat>{{8 * MiB, {2}, true}}));
  EXPECT_EQ(divided("bandwidth", order, 8 * MiB, {4 * MiB, GiB, 3 * MiB}),
            (std::vector<Flat>{{2 * MiB, {2}, true}, {4 * MiB, {0}, false}, {2 * MiB, {1}, false}}));
  EXPECT_EQ(divided("bandwidth", order, 8 * MiB, {0, 0, 0}), (std::vector<Flat>{{8 * MiB, {}, false}}));
  EXPECT_EQ(divided("bandwidth", order, 10000, {GiB, 0, 5000}),
            (std::vector<Flat>{{4096, {2}, true}, {5904, {0}, false}}));
}

TEST(Divide, KeepsLimits) {
  EXPECT_EQ(divided("bandwidth,max=1M", {{2}, {0}, {}}, 6 * MiB, {GiB, GiB, GiB}),
            (std::vector<Flat>{{MiB, {2}, true}, {5 * MiB, {0}, false}}));
  EXPECT_EQ(divided("bandwidth,max=2M", {{2}, {0}, {}}, 6 * MiB, {GiB, GiB, GiB}),
            (std::vector<Flat>{{2 * MiB, {2}, true}, {4 * MiB, {0}, false}}));
  EXPECT_EQ(divided("2,3,max=4M", {{2, 3}, {0}, {}}, 8 * MiB, {GiB, GiB, 2 * MiB, GiB}),
            (std::vector<Flat>{{2 * MiB, {2}, true}, {2 * MiB, {3}, true}, {4 * MiB, {0}, false}}));
}

TEST(Divide, InterleavesWhileAllOfThemHaveRoom) {
  const NodeOrder order{{2, 3}, {0}, {}};
  EXPECT_EQ(divided("2,3,interleave", order, 8 * MiB, {GiB, GiB, GiB, GiB}),
            (std::vector<Flat>{{8 * MiB, {2, 3}, true}}));
  EXPECT_EQ(divided("2,3,interleave", order, 8 * MiB, {GiB, GiB, GiB, 2 * MiB}),
            (std::vector<Flat>{{4 * MiB, {2, 3}, true}, {4 * MiB, {0}, false}}));
  EXPECT_EQ(divided("interleave", {{0}, {}, {}}, 8 * MiB, {GiB}), (std::vector<Flat>{{8 * MiB, {0}, true}}));
}

TEST(Numa, ReadsWhatANodeHasLeft) {
  char root[] = "/tmp/nearfield-numa-XXXXXX";
  ASSERT_NE(mkdtemp(root), nullptr);
  const std::string directory = std::string(root) + "/sys/devices/system/node/node3";
  ASSERT_EQ(system(("mkdir -p " + directory).c_str()), 0);
  std::ofstream(directory + "/meminfo") << "\nNode 3 MemTotal:       65536 kB\nNode 3 MemFree:        20480 kB\n";
  EXPECT_EQ(numa::room(3, root), 20 * MiB - MiB);
  EXPECT_EQ(numa::room(4, root), SIZE_MAX);
  EXPECT_EQ(system(("rm -r " + std::string(root)).c_str()), 0);
}

// ---------------------------------------------------------------- on this machine

struct Here : ::testing::Test {
  void SetUp() override {
    if (auto& nodes = machine::memory_nodes(); !nodes) GTEST_SKIP() << nodes.error().text;
    const int here = 0;
    if (auto asked = numa::where(&here, 1); !asked) GTEST_SKIP() << asked.error().text;
  }
  Result<Segment> created = Segment::create(64 * MiB);
  Segment& segment = *created;
};

std::string forced_elsewhere() {
  int unknown = 0;
  for (const auto& node : *machine::memory_nodes()) unknown = std::max(unknown, node.number + 1);
  return std::to_string(unknown) + ",forced";
}

TEST_F(Here, ComponentsLieWhereTheyWereAskedForAndApart) {
  Placer placer(*parse_wishes("control:local;copy-buffers:local"));
  Arena arena(segment, 0, &placer);
  const auto header = arena.allocate(4096, 4096);
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, 0u);
  Allowance collapsing;
  CopyBuffers buffers(segment, arena, 2 * MiB, collapsing);
  EXPECT_EQ(placer.counts(Component::copy_buffers).asked, 0u) << "nobody has needed one";
  EXPECT_NE(buffers.take(1000), 0u);
  const auto words = arena.allocate(100, 64), box = arena.allocate(100, 64, Component::fastboxes);
  ASSERT_TRUE(words);
  ASSERT_TRUE(box);
  EXPECT_NE(*words / 4096, *box / 4096) << "a page is of one placement";
  const auto control = placer.counts(Component::control), copies = placer.counts(Component::copy_buffers);
  EXPECT_GE(control.asked, 4096u);
  EXPECT_EQ(control.placed, control.asked);
  EXPECT_GE(copies.asked, 2 * MiB);
  EXPECT_LE(copies.asked, 2 * MiB + 64 * 1024) << "what lies before a huge page is not taken from there";
  EXPECT_EQ(copies.placed, copies.asked);
  EXPECT_EQ(placer.counts(Component::fastboxes).asked, 0u);
}

TEST_F(Here, AnAllocationsOwnWishIsGivenBack) {
  Placer placer({});
  Arena arena(segment, 4096, &placer);
  const Wish local = wish("local,forced");
  const auto first = arena.allocate(3 * MiB, 4096, Component::alloc_mem, &local);
  const auto second = arena.allocate(MiB, 4096, Component::alloc_mem, &local);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  segment.base()[*first] = std::byte{1};
  EXPECT_EQ(placer.counts(Component::alloc_mem).placed, 4 * MiB);
  arena.free(*first);
  const auto again = arena.allocate(2 * MiB, 4096, Component::alloc_mem, &local);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *first) << "its place is used again";
  EXPECT_EQ(segment.base()[*again], std::byte{0}) << "its memory had gone";
  const auto plain = arena.allocate(MiB, 4096);
  ASSERT_TRUE(plain);
  segment.base()[*plain] = std::byte{1};
  EXPECT_EQ(placer.counts(Component::alloc_mem).asked, 6 * MiB) << "what comes to its place is nobody's wish";
  for (const auto& offset : {*again, *second, *plain}) arena.free(offset);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST_F(Here, WhatIsForcedAndCannotBeIsAnErrorAndLeavesNothing) {
  static std::string refused;
  Placer placer(*parse_wishes("fastboxes:" + forced_elsewhere()), [](const std::string& why) { refused = why; });
  Arena arena(segment, 4096, &placer);
  EXPECT_NE(placer.complaints().find("this process has no NUMA node"), std::string::npos) << placer.complaints();
  const Wish other = wish(forced_elsewhere());
  const auto lot = arena.allocate(MiB, 4096, Component::alloc_mem, &other);
  ASSERT_FALSE(lot);
  EXPECT_NE(lot.error().text.find("memory for alloc-mem cannot be placed as"), std::string::npos) << lot.error().text;
  EXPECT_TRUE(refused.empty()) << "that is the caller's to say";
  EXPECT_FALSE(arena.allocate(MiB, 4096, Component::fastboxes));
  EXPECT_NE(refused.find("memory for fastboxes"), std::string::npos);
  EXPECT_EQ(placer.counts(Component::fastboxes).asked, 0u);
  EXPECT_TRUE(arena.allocate(MiB, 4096));
  EXPECT_EQ(arena.in_use(), MiB);
}

TEST_F(Here, MappedMemoryIsPlacedAndCounted) {
  Placer placer(*parse_wishes("windows:local,max=1M"));
  void* const at = mmap(nullptr, 4 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  ASSERT_TRUE(placer.place(Component::windows, at, 4 * MiB));
  const auto counts = placer.counts(Component::windows);
  EXPECT_EQ(counts.asked, 4 * MiB);
  EXPECT_GE(counts.placed, MiB);
  EXPECT_EQ(counts.unknown(), 0u);
  ASSERT_TRUE(placer.place(Component::heap, at, 4 * MiB)) << "nobody has asked";
  EXPECT_EQ(placer.counts(Component::heap).asked, 0u);
  munmap(at, 4 * MiB);
}

// As seccomp filters of containers do.
void deny(std::initializer_list<int> calls) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
  for (const int call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
}

// What `test` prints in a process that may not make these calls.
template <class Test>
std::string denied(std::initializer_list<int> calls, Test test) {
  int out[2];
  if (pipe(out)) return "no pipe";
  const pid_t child = testing::fork_child([&] {
    deny(calls);
    const std::string text = test();
    return write(out[1], text.data(), text.size()) >= 0;
  });
  close(out[1]);
  char text[2048];
  ssize_t got = 0;
  for (ssize_t more; (more = read(out[0], text + got, sizeof text - std::size_t(got))) > 0;) got += more;
  close(out[0]);
  return testing::end_of(child) == 77 ? "no seccomp" : std::string(text, std::size_t(got));
}

TEST_F(Here, WhereTheKernelDeniesItMemoryIsThereAllTheSame) {
  const std::string got = denied({SYS_mbind, SYS_move_pages}, [&] {
    Placer placer(*parse_wishes("control:local"));
    Arena arena(segment, 4096, &placer);
    const bool there = bool(arena.allocate(MiB, 4096));
    const auto counts = placer.counts(Component::control);
    return std::string(there ? "there" : "lacking") +
           (counts.unknown() == counts.asked && counts.asked ? ", unknown" : "");
  });
  if (got == "no seccomp") GTEST_SKIP() << got;
  EXPECT_EQ(got, "there, unknown");
}

TEST_F(Here, WhereTheKernelDeniesItWhatIsForcedSaysSo) {
  const std::string got = denied({SYS_mbind, SYS_move_pages}, [&] {
    Placer placer(*parse_wishes("control:local,forced"));
    Arena arena(segment, 4096, &placer);
    auto none = arena.allocate(MiB, 4096);
    return placer.complaints() + (none ? "there" : none.error().text);
  });
  if (got == "no seccomp") GTEST_SKIP() << got;
  EXPECT_EQ(got.find("control:local,forced: asking the kernel to place memory (mbind)"), 0u) << got;
  EXPECT_NE(got.find("CAP_SYS_NICE"), std::string::npos) << got;
  EXPECT_NE(got.find("memory for control cannot be placed"), std::string::npos) << got;
}

}  // namespace
}  // namespace nearfield::memory
