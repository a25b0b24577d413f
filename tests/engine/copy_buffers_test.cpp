// Copy buffers by age: no two overlap, they go round, and what is put back comes again last.
#include "engine/memory/copy_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/file_bytes.hpp"

namespace nearfield::testing {
namespace {

using memory::CopyBuffers;

struct Room {
  Result<memory::Segment> created = memory::Segment::create(64 << 20);
  memory::Segment& segment = *created;
  memory::Arena arena{segment, 4096};
  memory::Allowance collapsing;
};

TEST(CopyBuffers, GoRound) {
  Room room;
  CopyBuffers buffers(room.segment, room.arena, 64 << 10, room.collapsing);
  ASSERT_EQ(buffers.span(), 64u << 10);
  const std::size_t first = buffers.take(4000);
  buffers.put_back(first, 4000);
  std::size_t last = first;
  for (int i = 1; i < 16; ++i) {
    const std::size_t next = buffers.take(4000);
    EXPECT_EQ(next, last + 4096);
    buffers.put_back(next, 4000);
    last = next;
  }
  EXPECT_EQ(buffers.take(4000), first);
}

TEST(CopyBuffers, StopAtTheirSpanAndSpare) {
  Room room;
  CopyBuffers buffers(room.segment, room.arena, 16 << 10, room.collapsing);
  EXPECT_EQ(buffers.take(17 << 10), 0u);
  EXPECT_EQ(buffers.take(0), 0u);
  const std::size_t one = buffers.take(12 << 10);
  EXPECT_NE(one, 0u);
  EXPECT_EQ(buffers.take(2 << 10, 4 << 10), 0u);
  EXPECT_NE(buffers.take(2 << 10, 2 << 10), 0u);
  buffers.put_back(one, 12 << 10);
  EXPECT_EQ(buffers.take(13 << 10), 0u);  // free are 14, in two parts
  EXPECT_EQ(buffers.take(12 << 10), one);
}

TEST(CopyBuffers, HaveNoneWithoutMemory) {
  Room room;
  CopyBuffers buffers(room.segment, room.arena, 1 << 30, room.collapsing);
  EXPECT_EQ(buffers.take(1), 0u);
  EXPECT_EQ(buffers.take(1 << 20), 0u);
  buffers.rest();
  EXPECT_EQ(buffers.take(1), 0u) << "nobody asks for it again";
}

TEST(CopyBuffers, HaveMemoryFromTheFirstTakeUntilTheyRest) {
  Room room;
  CopyBuffers buffers(room.segment, room.arena, 4 << 20, room.collapsing);
  EXPECT_EQ(buffers.span(), 4u << 20);
  EXPECT_LT(file_bytes(room.segment.fd()), 1u << 20);
  const std::size_t first = buffers.take(1000);
  ASSERT_NE(first, 0u);
  EXPECT_GE(file_bytes(room.segment.fd()), 4u << 20) << "all of it is there, so that nothing fails later";
  buffers.rest();
  EXPECT_GE(file_bytes(room.segment.fd()), 4u << 20) << "some of it is held";
  buffers.put_back(first, 1000);
  buffers.rest();
  EXPECT_LT(file_bytes(room.segment.fd()), 1u << 20);
  EXPECT_EQ(buffers.free_bytes(), buffers.span());
  EXPECT_NE(buffers.take(1000), 0u);
  EXPECT_GE(file_bytes(room.segment.fd()), 4u << 20);
}

TEST(CopyBuffers, HaveOneMemoryWhoeverTakesFirst) {
  for (int round = 0; round < 20; ++round) {
    Room room;
    CopyBuffers buffers(room.segment, room.arena, 1 << 20, room.collapsing);
    std::array<std::size_t, 8> taken{};
    {
      std::vector<std::jthread> threads;
      for (std::size_t& each : taken) threads.emplace_back([&] { each = buffers.take(64 << 10); });
    }
    std::ranges::sort(taken);
    for (std::size_t i = 1; i < taken.size(); ++i) EXPECT_GE(taken[i], taken[i - 1] + (64 << 10));
    EXPECT_NE(taken[0], 0u);
    EXPECT_EQ(room.arena.in_use(), 1u << 20);
  }
}

TEST(CopyBuffers, NeverOverlap) {
  Room room;
  for (const std::size_t span : {std::size_t{5} << 10, std::size_t{200} << 10, std::size_t{2} << 20}) {
    CopyBuffers buffers(room.segment, room.arena, span, room.collapsing);
    std::mt19937 random(7);
    std::map<std::size_t, std::size_t> held;  // offset, bytes
    std::size_t free = buffers.span();
    for (int i = 0; i < 20000; ++i) {
      if (random() % 2) {
        const std::size_t bytes = 1 + random() % (span / 3), whole = (bytes + 1023) / 1024 * 1024;
        const std::size_t offset = buffers.take(bytes);
        if (!offset) continue;
        const auto behind = held.lower_bound(offset);
        EXPECT_TRUE(behind == held.end() || offset + whole <= behind->first);
        if (behind != held.begin()) {
          const auto before = std::prev(behind);
          EXPECT_LE(before->first + (before->second + 1023) / 1024 * 1024, offset);
        }
        held[offset] = bytes;
        free -= whole;
      } else if (!held.empty()) {
        const auto one = std::next(held.begin(), long(random() % held.size()));
        buffers.put_back(one->first, one->second);
        free += (one->second + 1023) / 1024 * 1024;
        held.erase(one);
      }
      ASSERT_EQ(buffers.free_bytes(), free);
    }
  }
}

TEST(CopyBuffers, SpanFollowsTheCaches) {
  EXPECT_EQ(memory::span_for(1 << 20, 32 << 20, 8), 2u << 20);
  EXPECT_EQ(memory::span_for(1 << 20, 32 << 20, 2), 2u << 20);
  EXPECT_EQ(memory::span_for(256 << 10, 8 << 20, 4), 512u << 10);
  EXPECT_EQ(memory::span_for(256 << 10, 1 << 20, 8), 256u << 10);
}

}  // namespace
}  // namespace nearfield::testing
