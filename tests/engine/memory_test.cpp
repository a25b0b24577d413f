// Segments, arenas, CPUs, temporaries.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "engine/machine/cpus.hpp"
#include "engine/machine/machine.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/collapsing.hpp"
#include "engine/memory/segment.hpp"
#include "engine/memory/temporaries.hpp"
#include "engine/settings/settings.hpp"
#include "tests/engine/child.hpp"
#include "tests/engine/file_bytes.hpp"

namespace nearfield::memory {
namespace {

using namespace machine;

TEST(Segment, IsSealedAgainstResizing) {
  auto segment = Segment::create(64 << 20);
  ASSERT_TRUE(segment) << segment.error().text;
  EXPECT_NE(0, ftruncate(segment->fd(), 1 << 20));
  EXPECT_NE(0, ftruncate(segment->fd(), 1 << 30));
  ASSERT_TRUE(segment->reserve(0, 8192));
  segment->base()[8191] = std::byte{1};
  auto peer = PeerSegment::map(dup(segment->fd()));
  ASSERT_TRUE(peer) << peer.error().text;
  EXPECT_EQ(peer->base()[8191], std::byte{1});
  EXPECT_FALSE(segment->reserve(segment->size() - 4096, 8192));
}

TEST(Segment, PeersRefuseWhatIsNotSealed) {
  const int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(0, ftruncate(loose, 1 << 20));
  EXPECT_FALSE(PeerSegment::map(loose));
  EXPECT_FALSE(PeerSegment::map(open("/dev/null", O_RDWR | O_CLOEXEC)));
}

TEST(Arena, CountsWhatEachComponentHolds) {
  auto segment = Segment::create(64 << 20);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 0);
  const auto box = arena.allocate(1000, 64, Component::fastboxes), other = arena.allocate(100, 64);
  const auto more = arena.allocate(64, 64, Component::fastboxes);
  ASSERT_TRUE(box && other && more);
  EXPECT_EQ(arena.held(Component::fastboxes).now, 1024u + 64u);
  EXPECT_EQ(arena.held(Component::control).now, 128u);
  arena.free(*box);
  EXPECT_EQ(arena.held(Component::fastboxes).now, 64u);
  EXPECT_EQ(arena.held(Component::fastboxes).most, 1024u + 64u);
  EXPECT_EQ(arena.held(Component::windows).most, 0u);
  EXPECT_EQ(arena.in_use(), 128u + 64u);
  EXPECT_EQ(segment->memory(), std::size_t{64} << 10) << "one step of the arena";
}

// Whether `body` returns true in a forked child, which may limit itself.
template <class Body>
bool holds_in_child(Body body) {
  return testing::end_of(testing::fork_child(body)) == 0;
}

bool limited(decltype(RLIMIT_AS) what, std::size_t bytes) {
  const rlimit limit = {bytes, RLIM_INFINITY};
  return setrlimit(what, &limit) == 0;
}

TEST(Segment, IsNoLongerThanFilesMayBe) {
  EXPECT_TRUE(holds_in_child([] {  // a longer one ends the process (SIGXFSZ)
    if (!limited(RLIMIT_FSIZE, 100 << 20)) return false;
    auto segment = Segment::create(std::size_t{1} << 34);
    return segment && segment->size() <= 100u << 20 && segment->size() > 64u << 20;
  }));
  EXPECT_TRUE(holds_in_child([] {
    if (!limited(RLIMIT_FSIZE, 1 << 20)) return false;
    auto segment = Segment::create(std::size_t{1} << 34);
    return !segment && segment.error().text.find("ulimit -f") != std::string::npos;
  }));
}

TEST(Segment, LeavesLimitedAddressSpaceToTheProgram) {
  constexpr std::size_t memory = std::size_t{64} << 30;
  EXPECT_EQ(segment_bytes(memory, 2), memory);
  EXPECT_LE(segment_bytes(memory, 512) * 1024, std::size_t{32} << 40);
  EXPECT_TRUE(holds_in_child([] {
    if (!limited(RLIMIT_AS, std::size_t{8} << 30)) return false;
    return segment_bytes(memory, 4) * 4 <= std::size_t{512} << 20;
  }));
}

TEST(Segment, IsNotFilledWhereAllMemoryIsLocked) {
  EXPECT_TRUE(holds_in_child([] {
    if (mlockall(MCL_FUTURE)) return errno == EPERM || errno == ENOMEM;  // not allowed here
    auto segment = Segment::create(256 << 20);
    if (!segment) return false;
    auto peer = PeerSegment::map(dup(segment->fd()));
    struct stat about {};
    fstat(segment->fd(), &about);
    segment->base()[5] = std::byte{1};
    return peer && about.st_blocks * 512 < 16 << 20 && peer->base()[5] == std::byte{1};
  }));
}

// Defaults are read like any other text, and are what is in force when nothing is set.
TEST(Settings, HaveDefaultsThatTheyUnderstand) {
  Settings settings;
  for (const SettingRow& row : settings_table()) {
    if (*row.fallback) {
      EXPECT_EQ(row.read(row.fallback, settings), "") << row.variable;
    }
  }
  std::string complaints;
  const Settings read = read_settings(complaints);
  EXPECT_EQ(complaints, "");
  for (const Settings& each : {Settings{}, read}) {
    EXPECT_TRUE(each.enabled && each.messages && !each.check);
    EXPECT_EQ(each.log, LogLevel::warn);
    EXPECT_EQ(each.choosing, Choosing::trial);
    EXPECT_EQ(each.stall_seconds, 60);
    EXPECT_EQ(each.eager_bytes, 16384u);
  }
}

TEST(Settings, OfTheHeapAreUnderstoodOrComplainedAbout) {
  auto complaints = [](const char* name, const char* value) {
    std::string all;
    setenv(name, value, 1);
    (void)read_settings(all);
    unsetenv(name);
    return all;
  };
  for (const char* good : {"shared", "off", ""}) EXPECT_EQ(complaints("NEARFIELD_HEAP", good), "") << good;
  for (const char* good : {"0", "1000000", ""}) EXPECT_EQ(complaints("NEARFIELD_HEAP_KEEP", good), "") << good;
  EXPECT_NE(complaints("NEARFIELD_HEAP", "xyz").find("shared, off"), std::string::npos);
  for (const char* bad : {"abc", "-1", "1x", " 1", "0x10"})
    EXPECT_NE(complaints("NEARFIELD_HEAP_KEEP", bad).find("not a number of bytes"), std::string::npos) << bad;
}

// Allocations that are there, by their beginnings.
class Live {
 public:
  std::size_t size() const { return bytes_.size(); }
  // False: it overlaps another one.
  bool add(std::size_t offset, std::size_t bytes) {
    const auto next = bytes_.lower_bound(offset);
    const bool apart = (next == bytes_.end() || offset + bytes <= next->first) &&
                       (next == bytes_.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
    bytes_[offset] = bytes;
    return apart;
  }
  void free_one(Arena& arena, std::size_t nth) {
    const auto victim = std::next(bytes_.begin(), long(nth));
    arena.free(victim->first);
    bytes_.erase(victim);
  }
  void free_all(Arena& arena) {
    while (size()) free_one(arena, 0);
  }

 private:
  std::map<std::size_t, std::size_t> bytes_;
};

TEST(Arena, NeverHandsOutTheSameByteTwice) {
  auto segment = Segment::create(256 << 20);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  std::mt19937 random(1);
  Live live;
  for (int round = 0; round < 5000; ++round) {
    if (live.size() < 40 || random() % 2) {
      const std::size_t bytes = 1 + random() % (random() % 8 ? 5000 : 3 << 20), align = std::size_t{64} << random() % 7;
      auto offset = arena.allocate(bytes, align);
      ASSERT_TRUE(offset) << offset.error().text;
      ASSERT_EQ(*offset % align, 0u);
      ASSERT_GE(*offset, 4096u);
      ASSERT_TRUE(live.add(*offset, bytes)) << round;
      segment->base()[*offset] = segment->base()[*offset + bytes - 1] = std::byte{1};
    } else {
      live.free_one(arena, random() % live.size());
    }
    if (live.size() > 60) {
      while (live.size() > 20) live.free_one(arena, 0);
    }
  }
  live.free_all(arena);
  EXPECT_EQ(arena.in_use(), 0u);
  EXPECT_LE(arena.reserved(), std::size_t{17} << 20) << "free memory must return to the kernel";
}

// Ranges of all kinds, freed at random: none overlaps another, what is reserved has memory, what is apart has none
// afterwards, and what is asked for as zero is.
TEST(Arena, RangesOfAllKindsLeaveRoomForAll) {
  auto segment = Segment::create(1 << 30);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  std::mt19937 random(3);
  Live live;
  for (int round = 0; round < 5000; ++round) {
    if (live.size() >= 10 && (live.size() >= 60 || random() % 2)) {
      live.free_one(arena, random() % live.size());
      continue;
    }
    const std::size_t bytes = 1 + random() % (random() % 8 ? 100000 : 3 << 20);
    const unsigned kind = random() % 4;
    const bool reserved = kind < 2, zero = kind == 2;
    const std::size_t align = !reserved      ? std::size_t{4096} << random() % 4
                              : random() % 4 ? std::size_t{64} << random() % 7
                                             : 2 << 20;
    const auto offset =
        kind == 0 ? arena.allocate(bytes, align)
        : kind == 1
            ? arena.allocate_apart(bytes, align, Component::control)
            : arena.allocate_untouched(bytes, align, zero ? Component::windows : Component::alloc_mem, nullptr, zero);
    ASSERT_TRUE(offset) << offset.error().text;
    ASSERT_EQ(*offset % align, 0u);
    ASSERT_TRUE(live.add(*offset, bytes)) << round;
    std::byte* const at = segment->base() + *offset;
    if (zero) {
      ASSERT_TRUE(std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; })) << round;
    }
    const std::size_t before = testing::file_bytes(segment->fd());
    std::memset(at, 0xa5, bytes);
    if (reserved) {
      ASSERT_EQ(testing::file_bytes(segment->fd()), before);
    }
  }
  live.free_all(arena);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, TheProgramsMemoryComesWhenItIsTouched) {
  auto segment = Segment::create(std::size_t{8} << 30);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  constexpr std::size_t large = 40 << 20;
  auto memory = [&] { return testing::file_bytes(segment->fd()); };
  const auto untouched = arena.allocate_untouched(std::size_t{4} << 30, 4096, Component::windows, nullptr, true);
  ASSERT_TRUE(untouched);
  EXPECT_EQ(memory(), 0u);
  arena.free(*untouched);
  // What was touched and freed is there for the next one, also with small ones in between.
  auto piece = arena.allocate_untouched(large, 4096, Component::alloc_mem, nullptr, false);
  ASSERT_TRUE(piece);
  std::memset(segment->base() + *piece, 1, large);
  EXPECT_EQ(memory(), large);
  for (int round = 0; round < 3; ++round) {
    arena.free(*piece);
    const auto small = arena.allocate_untouched(100, 4096, Component::alloc_mem, nullptr, false);
    piece = arena.allocate_untouched(large, 4096, Component::alloc_mem, nullptr, false);
    ASSERT_TRUE(small && piece);
    std::memset(segment->base() + *piece, 1, large);
    EXPECT_EQ(memory(), large) << round;
    arena.free(*small);
  }
  arena.free(*piece);
  // Not without bounds.
  const auto more = arena.allocate_untouched(512 << 20, 4096, Component::alloc_mem, nullptr, false);
  ASSERT_TRUE(more);
  std::memset(segment->base() + *more, 1, 512 << 20);
  arena.free(*more);
  EXPECT_LE(memory(), std::size_t{256} << 20);
}

// What was freed last waits for the same length, and joins its neighbours for others.
TEST(Arena, WhatWasFreedLastIsUsedAgain) {
  auto segment = Segment::create(1 << 30);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  auto get = [&](std::size_t bytes, std::size_t align = 4096, bool zero = false) {
    const auto at = arena.allocate_untouched(bytes, align, Component::alloc_mem, nullptr, zero);
    EXPECT_TRUE(at);
    return at ? *at : 0;
  };
  constexpr std::size_t bytes = 64 << 10;
  const std::size_t first = get(bytes, bytes), second = get(bytes), third = get(bytes);
  std::memset(segment->base() + first, 1, 3 * bytes);
  arena.free(first);
  arena.free(second);
  EXPECT_EQ(get(bytes), second);
  EXPECT_EQ(get(bytes, bytes), first);
  arena.free(second);
  EXPECT_EQ(get(bytes, 4096, true), second);
  EXPECT_EQ(segment->base()[second + bytes - 1], std::byte{0});
  for (const std::size_t one : {first, third, second}) arena.free(one);
  EXPECT_EQ(arena.in_use(), 0u);
  EXPECT_EQ(get(3 * bytes), first);
  arena.free(first);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, WhatAlignmentLeavesOutHasNoMemoryAndIsUsedLater) {
  auto segment = Segment::create(64 << 20);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  const auto first = arena.allocate(1000, 64), apart = arena.allocate_apart(2 << 20, 2 << 20, Component::copy_buffers);
  ASSERT_TRUE(first);
  ASSERT_TRUE(apart);
  EXPECT_LE(testing::file_bytes(segment->fd()), (2u << 20) + (64u << 10));
  const auto between = arena.allocate(1 << 20, 4096);
  ASSERT_TRUE(between);
  EXPECT_LT(*between, *apart);
  arena.free(*apart);
  EXPECT_LE(testing::file_bytes(segment->fd()), (1u << 20) + (128u << 10));
  const auto again = arena.allocate(2 << 20, 2 << 20);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *apart) << "its place is used again";
}

TEST(Arena, AHoleWithoutMemoryStaysOne) {
  auto segment = Segment::create(64 << 20);
  ASSERT_TRUE(segment);
  Arena arena(*segment, 4096);
  const auto apart = arena.allocate_apart(2 << 20, 2 << 20, Component::control);
  ASSERT_TRUE(apart);
  const std::size_t reserved = arena.reserved();
  const int kept = dup(segment->fd()), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, segment->fd());
  EXPECT_FALSE(arena.allocate(1 << 20, 64));
  EXPECT_FALSE(arena.allocate_apart(1 << 20, 64, Component::control));
  dup2(kept, segment->fd());
  EXPECT_EQ(arena.reserved(), reserved);
  const auto later = arena.allocate_apart(1 << 20, 64, Component::control);
  ASSERT_TRUE(later);
  EXPECT_LT(*later, *apart);
  EXPECT_EQ(arena.in_use(), 3u << 20);
  close(kept);
  close(nothing);
}

class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() : root_(std::filesystem::temp_directory_path() / ("nearfield-test-" + std::to_string(getpid()))) {}
  ~FakeRoot() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(FakeRoot, QuotaOfVersion2IsTheTightestOfAllParents) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(available_cpus(root_).quota, 1.5);
}

TEST_F(FakeRoot, QuotaOfVersion1) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/job\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(available_cpus(root_).quota, 0.5);
  EXPECT_DOUBLE_EQ(available_cpus(root_).available(), 0.5);
}

TEST_F(FakeRoot, WithoutLimitTheMaskCounts) {
  write("proc/self/cgroup", "0::/\n");
  const Cpus cpus = available_cpus(root_);
  EXPECT_GE(cpus.allowed.count(), 1);
  EXPECT_DOUBLE_EQ(cpus.available(), cpus.allowed.count());
}

TEST_F(FakeRoot, SessionsAreSchedulingGroupsOnlyBelowTheRootControlGroup) {
  EXPECT_EQ(scheduling_group(root_), 0);
  write("proc/sys/kernel/sched_autogroup_enabled", "1\n");
  write("proc/self/autogroup", "/autogroup-77 nice 0\n");
  write("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/\n0::/\n");
  EXPECT_EQ(scheduling_group(root_), 77);
  write("proc/self/cgroup", "4:memory:/\n1:cpu,cpuacct:/job\n0::/\n");
  EXPECT_EQ(scheduling_group(root_), 0);
  write("proc/self/cgroup", "0::/system.slice/job\n");
  EXPECT_EQ(scheduling_group(root_), 0);
  write("proc/self/cgroup", "0::/\n");
  write("proc/sys/kernel/sched_autogroup_enabled", "0\n");
  EXPECT_EQ(scheduling_group(root_), 0);
}

TEST_F(FakeRoot, CachesAndPackagesAreSharedWhereAllOurCpusAreInThem) {
  Cpus cpus{};
  cpus.allowed.bits.set(9);
  EXPECT_EQ(read_caches(cpus, root_).shared_by(cpus), -1);
  EXPECT_EQ(shared_package(cpus, root_), -1);
  write("sys/devices/system/cpu/cpu9/cache/index0/shared_cpu_list", "9\n");
  write("sys/devices/system/cpu/cpu9/cache/index1/shared_cpu_list", "8-11,72-75\n");
  write("sys/devices/system/cpu/cpu9/topology/core_siblings_list", "0-63\n");
  EXPECT_EQ(read_caches(cpus, root_).shared_by(cpus), 8);
  EXPECT_EQ(shared_package(cpus, root_), 0);
  cpus.allowed.bits.set(12);
  EXPECT_EQ(read_caches(cpus, root_).shared_by(cpus), -1);
  EXPECT_EQ(shared_package(cpus, root_), 0);
  cpus.allowed.bits.set(64);
  EXPECT_EQ(shared_package(cpus, root_), -1);
}

// Of calls that follow each other for ten seconds, each of which wants `wanted` huge pages that take `each`
// nanoseconds.
struct Collapsing {
  std::uint64_t first;  // when the first one was permitted
  double share;         // of the time, that they took beyond what they spared
  std::size_t pages;
};
Collapsing collapse_for_ten_seconds(std::size_t wanted, std::uint64_t each, std::uint64_t spared) {
  Allowance allowance;
  constexpr std::uint64_t start = 77, seconds = 10'000'000'000;
  Collapsing seen{0, 0, 0};
  std::uint64_t lost = 0;
  allowance.begin(start);
  for (std::uint64_t now = start; now < start + seconds;) {
    const std::size_t made = allowance.permits(wanted, spared, now);
    EXPECT_LE(made, wanted);
    if (!made) {
      now += 100'000;
      continue;
    }
    if (!seen.first) seen.first = now - start;
    allowance.charge(made, spared, made * each);
    now += made * each;
    if (each > spared) lost += made * (each - spared);
    seen.pages += made;
  }
  seen.share = double(lost) / double(seconds);
  return seen;
}

TEST(Allowance, LeavesTheFirstSecondAlone) {
  for (const std::uint64_t each : {100'000, 20'000'000})
    EXPECT_GE(collapse_for_ten_seconds(1, each, 0).first, std::uint64_t{1'000'000'000}) << each;
}
TEST(Allowance, DoesNotBoundWhatSparesMore) {
  const Collapsing seen = collapse_for_ten_seconds(32, 100'000, 750'000);
  EXPECT_GT(seen.pages, 80'000u);
}
TEST(Allowance, LeavesSlowCallsAShareOfTheTime) {
  for (const std::uint64_t each : {4'000'000, 20'000'000, 84'000'000}) {
    for (const std::size_t wanted : {1, 32}) {
      const Collapsing seen = collapse_for_ten_seconds(wanted, each, 0);
      // One call may take longer than was expected of it.
      EXPECT_LT(seen.share, 0.005 + double(each * wanted) / 1e10) << each << " " << wanted;
      EXPECT_GT(seen.pages, 0u) << each << " " << wanted;
    }
  }
}

TEST(CpuSet, IsWrittenAsAList) {
  CpuSet set;
  for (const int cpu : {0, 1, 2, 8}) set.bits.set(std::size_t(cpu));
  EXPECT_EQ(set.list(), "0-2,8");
}

TEST(Temporary, IsReused) {
  std::byte* first;
  {
    Temporary t(100'000);
    first = t.data();
    ASSERT_NE(first, nullptr);
    first[99'999] = std::byte{1};
  }
  EXPECT_GE(Temporary::kept(), 100'000u);
  Temporary again(120'000);
  EXPECT_EQ(again.data(), first);
}

TEST(Machine, IsReadAndWritten) {
  const std::string path = ::testing::TempDir() + "machine-" + std::to_string(getpid()) + ".toml";
  Machine machine;
  machine.line = 77;
  machine.cpus = 12;
  std::ofstream(path) << "name = \"a machine\"\n" << describe(machine);
  auto read = read_machine(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->line, 77);
  EXPECT_EQ(read->cpus, 12);
  std::ofstream(path) << "line = 50\nlin = 3\n";
  auto wrong = read_machine(path);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("line 2"), std::string::npos);
  EXPECT_NE(wrong.error().text.find("all_memory"), std::string::npos);
  unlink(path.c_str());
  EXPECT_FALSE(read_machine(path));
}

}  // namespace
}  // namespace nearfield::memory
