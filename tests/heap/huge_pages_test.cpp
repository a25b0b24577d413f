// When blocks get huge pages, and when not.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/memory/collapsing.hpp"
#include "heap/heap.h"
#include "tests/heap/helpers.hpp"

namespace {

constexpr std::size_t extent = 2 << 20, page = 4096, large = 16 << 20;

nearfield_heap_statistics statistics() {
  nearfield_heap_statistics now;
  nearfield_heap_stats(&now);
  return now;
}

std::size_t resident_pages(const void* p, std::size_t bytes) {
  std::vector<unsigned char> there(bytes / page);
  mincore(const_cast<void*>(p), bytes, there.data());
  std::size_t count = 0;
  for (const unsigned char one : there) count += one & 1;
  return count;
}

// Memory that has been written; the compiler must not see that it is not read.
void* written(std::size_t bytes, std::size_t touched) {
  void* const p = std::malloc(bytes);
  std::memset(p, 1, touched);
  asm volatile("" ::"r"(p) : "memory");
  return p;
}

// Whether this kernel makes huge pages of such memory at all.
bool kernel_can() {
  const int fd = memfd_create("probe", 0);
  if (ftruncate(fd, extent)) return false;
  auto* const room = static_cast<std::byte*>(mmap(nullptr, 2 * extent, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(room) + extent - 1) & ~(extent - 1));
  mmap(at, extent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  *at = std::byte{1};
  const bool can = madvise(at, extent, MADV_COLLAPSE) == 0;
  munmap(room, 2 * extent);
  close(fd);
  return can;
}

// Repeats `step` until there are more huge pages than `before`, for twenty seconds at most.
template <class Step>
bool makes_huge_pages(std::uint64_t before, Step step) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (statistics().huge_extents <= before && std::chrono::steady_clock::now() < end) step();
  return statistics().huge_extents > before;
}

TEST(HugePages, DISABLED_WhatNobodyTouchesNeedsNoMemory) {
  for (int round = 0; round < 8; ++round) {
    auto* const sparse = static_cast<char*>(std::malloc(large * 8));
    for (std::size_t i = 0; i < large * 8; i += extent) sparse[i] = 1;
    EXPECT_LE(resident_pages(sparse, large * 8), large * 8 / extent) << round;
    std::free(sparse);
  }
}

TEST(HugePages, DISABLED_WhatMessagesUseGetsThemAndKeepsItsContents) {
  if (!kernel_can()) GTEST_SKIP() << "this kernel makes none";
  const std::size_t bytes = 2 * large;
  auto* const block = static_cast<unsigned char*>(std::malloc(bytes));
  for (std::size_t i = 0; i < bytes; ++i) block[i] = static_cast<unsigned char>(i * 7 + i / page);
  EXPECT_TRUE(makes_huge_pages(statistics().huge_extents, [&] {
    nearfield_heap_use(block + page, bytes - 2 * page);
    usleep(1000);
  }));
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], static_cast<unsigned char>(i * 7 + i / page)) << i;
  std::free(block);
}

TEST(HugePages, DISABLED_ProgramsThatTouchWhatTheyAllocateGetThem) {
  if (!kernel_can()) GTEST_SKIP() << "this kernel makes none";
  std::vector<void*> held;
  const bool made = makes_huge_pages(statistics().huge_extents, [&] {
    for (int i = 0; i < 4; ++i) std::free(written(large, large));  // so will be what comes next
    held.push_back(written(large * 4, page));                      // new memory
    if (held.size() < 20) return;
    for (void* const one : held) std::free(one);  // which shows that the program does not use it all
    held.clear();
    usleep(100'000);
  });
  for (void* const one : held) std::free(one);
  EXPECT_TRUE(made);
}

// What a program has freed so far decides, so each begins with an empty heap.
TEST(HugePages, InProcessesOfTheirOwn) {
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  for (const char* const name : {"WhatNobodyTouchesNeedsNoMemory", "WhatMessagesUseGetsThemAndKeepsItsContents",
                                 "ProgramsThatTouchWhatTheyAllocateGetThem"}) {
    const std::string command = std::string(self) +
                                " --gtest_also_run_disabled_tests --gtest_brief=1 --gtest_filter=HugePages.DISABLED_" +
                                name;
    EXPECT_EQ(std::system(command.c_str()), 0) << name;
  }
}

TEST(HugePages, OneProcessAtATime) {
  const nearfield::memory::CollapsingAlone here;
  if (!here) GTEST_SKIP() << "another process makes some right now, or there is no such file";
  const nearfield::memory::CollapsingAlone there;
  EXPECT_FALSE(there);
}

}  // namespace
