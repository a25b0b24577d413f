// The shared heap under this very program: its allocation functions are linked in, so gtest runs on it as well.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <malloc.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "heap/heap.h"
#include "heap/heap.hpp"
#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;

namespace {

std::uint64_t pattern(std::uint64_t seed, std::size_t i) { return (seed + i) * 0x9E3779B97F4A7C15u; }

void paint(void* p, std::size_t bytes, std::uint64_t seed) {
  auto* words = static_cast<std::uint64_t*>(p);
  for (std::size_t i = 0; i < bytes / 8; i += 64) words[i] = pattern(seed, i);
  if (bytes >= 8) words[bytes / 8 - 1] = pattern(seed, bytes / 8 - 1);
}

bool painted(const void* p, std::size_t bytes, std::uint64_t seed) {
  const auto* words = static_cast<const std::uint64_t*>(p);
  for (std::size_t i = 0; i < bytes / 8; i += 64)
    if (words[i] != pattern(seed, i) && i != bytes / 8 - 1) return false;
  return bytes < 8 || words[bytes / 8 - 1] == pattern(seed, bytes / 8 - 1);
}

bool all_zero(const void* p, std::size_t bytes) {
  const auto* at = static_cast<const char*>(p);
  for (std::size_t i = 0; i < bytes; ++i)
    if (at[i]) return false;
  return true;
}

std::atomic<bool> forking = false;  // then a block may leave the peers' reach at any time

// Random calls of every function, with a pattern in every block; false at the first block that is not what it was.
bool random_calls(unsigned seed, int rounds) {
  struct Held {
    void* p;
    std::size_t bytes;
    std::uint64_t seed;
  };
  std::vector<Held> held;
  std::mt19937 random(seed);
  constexpr std::size_t edges[] = {1, 4096, 32767, 32768, 65536, 262144, 1 << 20, 3 << 19, 2 << 20, 4 << 20};
  for (int round = 0; round < rounds; ++round) {
    std::size_t bytes = edges[random() % 10];
    if (random() % 3) bytes += random() % 9000;
    const unsigned what = random() % 8;
    if (what < 3 && !held.empty()) {
      const std::size_t i = random() % held.size();
      if (!painted(held[i].p, held[i].bytes, held[i].seed)) return false;
      std::free(held[i].p);
      held[i] = held.back();
      held.pop_back();
    } else if (what == 3 && !held.empty()) {
      Held& h = held[random() % held.size()];
      h.p = std::realloc(h.p, bytes);
      const std::size_t kept = std::min(h.bytes, bytes) / 8 * 8;
      const auto* words = static_cast<const std::uint64_t*>(h.p);
      for (std::size_t i = 0; i < kept / 8; i += 64)
        if (words[i] != pattern(h.seed, i) && i != h.bytes / 8 - 1) return false;
      h.bytes = bytes;
      paint(h.p, bytes, h.seed);
    } else {
      void* p = nullptr;
      const std::size_t alignment = std::size_t{16} << random() % 18;
      switch (what) {
        case 4: p = std::calloc(1, bytes); break;
        case 5: p = std::aligned_alloc(alignment, bytes); break;
        case 6:
          if (posix_memalign(&p, alignment, bytes)) return false;
          break;
        default: p = std::malloc(bytes);
      }
      if (!p || (what == 4 && !all_zero(p, bytes)) || malloc_usable_size(p) < bytes) return false;
      if ((what == 5 || what == 6) && reinterpret_cast<std::uintptr_t>(p) % alignment) return false;
      if (!forking && bytes >= nearfield::heap::threshold && !nearfield_heap_contains(p)) return false;
      const std::uint64_t own = random();
      paint(p, bytes, own);
      held.push_back({p, bytes, own});
      if (held.size() > 40) {
        std::free(held.front().p);
        held.erase(held.begin());
      }
    }
  }
  for (const Held& h : held) {
    if (!painted(h.p, h.bytes, h.seed)) return false;
    std::free(h.p);
  }
  return true;
}

TEST(Heap, KeepsEveryBlockApart) { EXPECT_TRUE(random_calls(1, 4000)); }

TEST(Heap, KeepsEveryBlockApartWhenItKeepsNothing) {
  const std::size_t before = std::exchange(nearfield::heap::heap.keep, 1 << 20);
  EXPECT_TRUE(random_calls(2, 4000));
  EXPECT_LE(statistics().bytes_kept, 1u << 20);
  nearfield::heap::heap.keep = before;
}

TEST(Heap, ServesThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&, t] { good += random_calls(10 + t, 1500); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
}

TEST(Heap, RefusesWhatNobodyCanHave) {
  volatile std::size_t much = PTRDIFF_MAX;
  EXPECT_EQ(std::malloc(much), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(std::calloc(much, 16), nullptr);
}

// The number of its pages wraps around.
TEST(Heap, TheLastBlockDoesNotGrowBeyondAllBounds) {
  EXPECT_TRUE(child_succeeds([] {
    char* const last = static_cast<char*>(std::malloc(40'000));
    for (volatile std::size_t bytes : {SIZE_MAX - 4095, SIZE_MAX - 8191, (SIZE_MAX >> 1) + 1, SIZE_MAX >> 1, SIZE_MAX})
      if (std::realloc(last, bytes)) return false;
    char* const next = static_cast<char*>(std::malloc(40'000));
    return next + 40'000 <= last || last + 40'000 <= next;
  }));
}

TEST(Heap, FreeKeepsErrno) {
  void* const p = std::malloc(8 << 20);
  errno = 77;
  std::free(p);
  EXPECT_EQ(errno, 77);
}

TEST(Heap, AProtectionEndsWithTheBlock) {
  for (int i = 0; i < 4; ++i) {
    auto* const p = static_cast<char*>(std::aligned_alloc(4096, 1 << 20));
    std::memset(p, 1, 1 << 20);
    ASSERT_EQ(mprotect(p, 4096, PROT_NONE), 0);
    std::free(p);
  }
}

TEST(Heap, ServesNothingNewInAPause) {
  constexpr std::size_t bytes = 100'000;
  auto* const before = static_cast<char*>(std::malloc(bytes));
  auto* const freed = static_cast<char*>(std::malloc(bytes));
  paint(before, bytes, 1);
  nearfield_heap_pause(1);
  nearfield_heap_pause(1);  // by another thread
  nearfield_heap_pause(-1);
  const auto served = statistics().allocations;
  auto* const meanwhile = static_cast<char*>(std::malloc(bytes));
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 4096, bytes), 0);
  void* const zero = std::calloc(100, 1000);
  paint(meanwhile, bytes, 2);
  auto* const moved = static_cast<char*>(std::realloc(before, 3 * bytes));
  std::free(freed);
  const auto after = statistics().allocations;
  nearfield_heap_pause(-1);
  EXPECT_EQ(after, served);
  for (void* p : {static_cast<void*>(meanwhile), aligned, zero}) EXPECT_FALSE(nearfield_heap_contains(p));
  EXPECT_TRUE(painted(moved, bytes, 1));
  EXPECT_TRUE(all_zero(zero, 100'000));
  auto* const grown = static_cast<char*>(std::realloc(meanwhile, 2 * bytes));
  EXPECT_TRUE(nearfield_heap_contains(grown)) << "it is served again";
  EXPECT_TRUE(painted(grown, bytes, 2));
  for (void* p : {static_cast<void*>(moved), static_cast<void*>(grown), aligned, zero}) std::free(p);
}

TEST(Heap, SharesWhatItHandsOut) {
  auto* const p = static_cast<char*>(std::malloc(1 << 20));
  std::memset(p, 7, 1 << 20);
  nearfield_heap_view view;
  ASSERT_EQ(nearfield_heap_current(&view), 0);
  void* const other =
      mmap(nullptr, view.size, PROT_READ, MAP_SHARED | MAP_NORESERVE, nearfield_heap_descriptor(view.generation), 0);
  ASSERT_NE(other, MAP_FAILED);
  const auto offset = p - static_cast<char*>(view.base);
  const volatile char& seen = static_cast<char*>(other)[offset + 12345];
  EXPECT_EQ(seen, 7);
  const_cast<volatile char*>(p)[12345] = 8;
  EXPECT_EQ(seen, 8);
  munmap(other, view.size);
  std::free(p);
}

// Two blocks of one extent. The first one's bytes are its owner's alone, whatever is done for the second.
class Neighbours : public ::testing::Test {
 protected:
  void SetUp() override {
    nearfield::heap::heap.keep = 0;
    for (char*& at : begins_) at = static_cast<char*>(std::aligned_alloc(nearfield::heap::extent, 65536));
    while (!first && others_.size() < 200) {
      auto* const second = static_cast<char*>(std::malloc(1 << 20));
      for (char* at : begins_)
        if (at < second && second < at + nearfield::heap::extent) first = at;
      if (first) std::free(second);
      else others_.push_back(second);
    }
    ASSERT_NE(first, nullptr);
  }
  void TearDown() override {
    for (char* at : begins_) std::free(at);
    for (char* at : others_) std::free(at);
    nearfield::heap::heap.keep = before_;
  }
  static void second_comes_and_goes() {
    auto* const second = static_cast<char*>(std::malloc(1 << 20));
    second[0] = 1;
    std::free(second);
  }
  char* first = nullptr;

 private:
  std::size_t before_ = nearfield::heap::heap.keep;
  char* begins_[4];
  std::vector<char*> others_;  // what lay elsewhere
};

TEST_F(Neighbours, LoseNoStore) {
  std::atomic<bool> stop = false;
  std::uint64_t lost = 0;
  std::thread writer([&] {
    auto& byte = *const_cast<volatile char*>(first);
    for (char value = 1; !stop; ++value) {
      byte = value;
      for (int i = 0; i < 3; ++i) lost += byte != value;
      std::atomic_thread_fence(
          std::memory_order_seq_cst);  // from here on the byte is read, not what is still to be stored
      lost += byte != value;
    }
  });
  for (int i = 0; i < 6000; ++i) second_comes_and_goes();
  stop = true;
  writer.join();
  EXPECT_EQ(lost, 0u);
}

TEST_F(Neighbours, MayHaveNoAccess) {
  second_comes_and_goes();
  ASSERT_EQ(mprotect(first, 4096, PROT_NONE), 0);
  second_comes_and_goes();
  ASSERT_EQ(mprotect(first, 4096, PROT_READ | PROT_WRITE), 0);
}

TEST(Fork, LeaksNothing) {
  void* held[3] = {};
  const std::size_t before = open_files();
  for (int i = 0; i < 200; ++i) {
    void*& p = held[i % 3];
    std::free(p);
    p = std::malloc(100000 + std::size_t(i));
    paint(p, 100000, std::uint64_t(i));
    EXPECT_TRUE(child_succeeds([&] { return painted(p, 100000, std::uint64_t(i)); }));
  }
  // The files of the regions that still hold blocks, of the current one, and a mark for children.
  EXPECT_LE(open_files(), before + nearfield::heap::heap.retired.size() + 2);
  for (void* p : held) std::free(p);
  EXPECT_LE(nearfield::heap::heap.retired.size(), 4u);
}

TEST(Fork, WorksWhileThreadsAllocate) {
  forking = true;
  std::atomic<bool> stop = false;
  std::atomic<int> bad = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; !stop; ++i) bad += !random_calls(t * 1000 + i, 50);
    });
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(child_succeeds([&] { return random_calls(unsigned(i), 50); }));
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  forking = false;
}

// They are no cancellation points, and who is cancelled leaves no lock behind.
TEST(Allocations, DoNotEndAThreadThatIsToBeCancelled) {
  pthread_t thread;
  const auto allocate = [](void*) -> void* {
    pthread_cancel(pthread_self());
    for (int round = 0; round < 20; ++round) {
      void* blocks[8];
      for (void*& block : blocks) std::memset(block = std::malloc(16 << 20), 1, 16 << 20);
      for (void* block : blocks) std::free(block);
      const pid_t child = fork();
      if (child == 0) _exit(0);
      syscall(SYS_wait4, child, nullptr, 0, nullptr);  // waitpid is a cancellation point
    }
    return nullptr;
  };
  ASSERT_EQ(0, pthread_create(&thread, nullptr, allocate, nullptr));
  void* result = nullptr;
  ASSERT_EQ(0, pthread_join(thread, &result));
  EXPECT_EQ(result, nullptr);
  std::free(std::malloc(1 << 20));
}

// What it writes to descriptors that it has closed must not go into the heap.
TEST(Fork, LeavesStandardDescriptorsToTheChild) {
  EXPECT_TRUE(child_succeeds([] {
    for (const int fd : {0, 1, 2}) close(fd);
    auto* const block = static_cast<char*>(std::malloc(1 << 20));
    std::memset(block, 'a', 1 << 20);
    bool good = true;
    for (const int fd : {0, 1, 2}) good &= write(fd, "x", 1) == -1;
    return good && block[0] == 'a';
  }));
}

}  // namespace
