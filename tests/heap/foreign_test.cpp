// Mappings that the program lays over pages of its blocks, or takes away there: what it sees is its own, peers are told
// of none of it, and the next owner of the pages gets memory that peers see.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "heap/heap.hpp"
#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;

namespace {

constexpr std::size_t page = 4096, mib = 1 << 20;
constexpr int rw = PROT_READ | PROT_WRITE;

char* block_of(std::size_t bytes) {
  auto* const p = static_cast<char*>(std::aligned_alloc(page, bytes));
  std::memset(p, 'b', bytes);
  return p;
}

// What a peer sees of the region.
class Peer {
 public:
  Peer() {
    nearfield_heap_current(&view_);
    const int fd = nearfield_heap_descriptor(view_.generation);
    at_ = static_cast<char*>(mmap(nullptr, view_.size, rw, MAP_SHARED | MAP_NORESERVE, fd, 0));
    close(fd);
  }
  ~Peer() { munmap(at_, view_.size); }
  char* of(char* p) const { return at_ + (p - static_cast<char*>(view_.base)); }

 private:
  nearfield_heap_view view_;
  char* at_;
};

struct Way {
  const char* name;
  std::function<bool(char* at, std::size_t bytes)> lay;  // afterwards the pages are zero and writable
};

std::vector<Way> ways() {
  return {{"anonymous",
           [](char* at, std::size_t bytes) {
             return mmap(at, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
           }},
          {"mmap64",
           [](char* at, std::size_t bytes) {
             return mmap64(at, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
           }},
          {"file",
           [](char* at, std::size_t bytes) {
             const int fd = memfd_create("theirs", 0);
             const bool good =
                 ftruncate(fd, off_t(bytes)) == 0 && mmap(at, bytes, rw, MAP_SHARED | MAP_FIXED, fd, 0) == at;
             close(fd);
             return good;
           }},
          {"unmapped first",
           [](char* at, std::size_t bytes) {
             return munmap(at, bytes) == 0 &&
                    mmap(at, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at;
           }},
          {"mremap",
           [](char* at, std::size_t bytes) {
             void* const from = mmap(nullptr, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
             return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
           }},
          {"shmat", [](char* at, std::size_t bytes) {
             const int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
             const bool good = shmat(id, at, SHM_REMAP) == at;
             shmctl(id, IPC_RMID, nullptr);
             return good;
           }}};
}

bool all(const char* p, std::size_t bytes, char value) {
  return std::all_of(p, p + bytes, [&](char each) { return each == value; });
}

TEST(Foreign, PeersAreToldOfNoneOfIt) {
  for (const Way& way : ways())
    for (const std::size_t bytes : {16 * page, 2 * mib, 5 * mib}) {
      SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(bytes));
      char* const p = block_of(bytes);
      char* const neighbour = block_of(bytes);
      ASSERT_TRUE(nearfield_heap_contains(p, bytes));
      char* const at = p + 4 * page;
      ASSERT_TRUE(way.lay(at, 3 * page));
      EXPECT_TRUE(all(at, 3 * page, 0));
      std::memset(at, 'm', 3 * page);
      EXPECT_FALSE(nearfield_heap_contains(at, 1));
      EXPECT_FALSE(nearfield_heap_contains(at + 3 * page - 1, 1));
      EXPECT_FALSE(nearfield_heap_contains(p, bytes));
      EXPECT_FALSE(nearfield_heap_contains(p, 4 * page + 1)) << "it begins before";
      EXPECT_FALSE(nearfield_heap_contains(at + 3 * page - 1, 2 * page)) << "it ends behind";
      EXPECT_TRUE(nearfield_heap_contains(p, 4 * page));
      EXPECT_TRUE(nearfield_heap_contains(at + 3 * page, bytes - 7 * page));
      EXPECT_TRUE(nearfield_heap_contains(neighbour, bytes));
      nearfield_heap_use(p, bytes);
      const Peer peer;
      EXPECT_EQ(peer.of(p)[4 * page - 1], 'b');
      EXPECT_TRUE(all(p, 4 * page, 'b') && all(at, 3 * page, 'm') && all(at + 3 * page, bytes - 7 * page, 'b'));
      std::free(p);
      for (const std::size_t next : {bytes, bytes / 2}) {
        char* const q = block_of(next);
        EXPECT_TRUE(nearfield_heap_contains(q, next));
        const Peer sees;
        EXPECT_TRUE(all(sees.of(q), next, 'b'));
        sees.of(q)[next / 2] = 'p';
        EXPECT_EQ(const_cast<volatile char*>(q)[next / 2], 'p');
        std::free(q);
      }
      std::free(neighbour);
      EXPECT_FALSE(nearfield::heap::heap.foreign);
    }
}

TEST(Foreign, ReallocAndForksKeepWhatIsThere) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    constexpr std::size_t bytes = 64 * page;
    char* p = block_of(bytes);
    ASSERT_TRUE(way.lay(p + page, page));
    p[page] = 'm';
    EXPECT_TRUE(child_succeeds([&] { return p[0] == 'b' && p[page] == 'm' && p[2 * page] == 'b'; }));
    p = static_cast<char*>(std::realloc(p, 64 * bytes));
    EXPECT_TRUE(nearfield_heap_contains(p, 64 * bytes));
    EXPECT_TRUE(all(p, page, 'b') && p[page] == 'm' && all(p + 2 * page, bytes - 2 * page, 'b'));
    std::free(p);
  }
}

TEST(Foreign, WhatIsDiscardedIsNotTheBlocks) {
  constexpr std::size_t bytes = 8 * page;
  char* const p = block_of(bytes);
  const int fd = memfd_create("theirs", 0);
  ASSERT_EQ(ftruncate(fd, page), 0);
  ASSERT_EQ(mmap(p + page, page, rw, MAP_SHARED | MAP_FIXED, fd, 0), p + page);
  p[page] = 'm';
  ASSERT_EQ(madvise(p, bytes, MADV_DONTNEED), 0);
  EXPECT_TRUE(all(p, page, 0) && all(p + 2 * page, bytes - 2 * page, 0));
  EXPECT_EQ(p[page], 'm') << "of a file, which keeps it";
  close(fd);
  std::free(p);
}

TEST(Foreign, MremapMovesTheContentsAndNotTheFile) {
  constexpr std::size_t bytes = 2 * mib;
  char* const p = block_of(bytes);
  EXPECT_EQ(mremap(p, 4 * page, 8 * page, 0), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(mremap(p, 0, page, MREMAP_MAYMOVE), MAP_FAILED) << "which would make a second mapping of the file";
  EXPECT_EQ(errno, EINVAL);
  auto* const moved = static_cast<char*>(mremap(p + page, 4 * page, 8 * page, MREMAP_MAYMOVE));
  ASSERT_NE(moved, MAP_FAILED);
  EXPECT_FALSE(nearfield_heap_contains(moved, 1));
  EXPECT_TRUE(all(moved, 4 * page, 'b') && all(moved + 4 * page, 4 * page, 0));
  EXPECT_FALSE(nearfield_heap_contains(p, bytes));
  unsigned char there;
  EXPECT_EQ(mincore(p + page, page, &there), -1) << "it is gone there";
  auto* const left = static_cast<char*>(mremap(p + 64 * page, page, page, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr));
  ASSERT_NE(left, MAP_FAILED);
  EXPECT_TRUE(all(left, page, 'b') && all(p + 64 * page, page, 0));
  EXPECT_EQ(mremap(p + 128 * page, 4 * page, page, 0), p + 128 * page);
  EXPECT_FALSE(nearfield_heap_contains(p + 129 * page, 1));
  char* const other = block_of(bytes);
  EXPECT_EQ(mremap(p + 256 * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
  EXPECT_FALSE(nearfield_heap_contains(other, 1));
  std::free(p);
  std::free(other);
  char* const next = block_of(bytes);
  EXPECT_TRUE(all(moved, 4 * page, 'b') && all(left, page, 'b')) << "the next block is another one";
  EXPECT_TRUE(nearfield_heap_contains(next, bytes));
  std::free(next);
  munmap(moved, 8 * page);
  munmap(left, page);
}

TEST(Foreign, FreedMemoryIsNotHandedOutAgain) {
  char* const block = block_of(mib);
  char* const volatile kept = block;
  std::free(block);
  char* const p = kept;
  ASSERT_EQ(mmap(p + page, page, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), p + page);
  p[page] = 'm';
  std::vector<char*> others;
  for (int i = 0; i < 64; ++i) others.push_back(block_of(40'000));
  others.push_back(block_of(mib));
  EXPECT_EQ(p[page], 'm');
  for (char* each : others) std::free(each);
}

TEST(Foreign, TheRegionEndsBeforeAMappingBehindAllBlocks) {
  EXPECT_TRUE(child_succeeds([] {
    char* const p = block_of(mib);
    nearfield_heap_view view;
    if (nearfield_heap_current(&view)) return false;
    char* const at = static_cast<char*>(view.base) + view.used + 64 * mib;
    if (mmap(at, page, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) return false;
    *at = 'm';
    bool good = true;
    for (int i = 0; i < 100; ++i) {
      char* const q = block_of(mib);
      good &= q + mib <= at || q > at;
    }
    nearfield_heap_current(&view);
    return good && *at == 'm' && static_cast<char*>(view.base) + view.size <= at && all(p, mib, 'b');
  }));
}

TEST(Foreign, ThreadsMayDoItAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<int> bad = 0;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const std::size_t bytes = (std::size_t(t + i) % 9 + 9) * page;
        char* const p = block_of(bytes);
        bad += mmap(p + page, page, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p + page;
        bad += nearfield_heap_contains(p, bytes) || !nearfield_heap_contains(p, page);
        bad += !all(p, page, 'b') || !all(p + page, page, 0) || !all(p + 2 * page, bytes - 2 * page, 'b');
        std::free(p);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_FALSE(nearfield::heap::heap.foreign);
}

TEST(Foreign, PagesStayForeignWhenNeighboursAreGivenBack) {
  // Neighbours share extents of 2 MiB, and half of the blocks are more than the heap keeps.
  constexpr std::size_t blocks = 1000, bytes = 150 * page;
  std::vector<char*> all(blocks);
  for (char*& each : all) each = static_cast<char*>(std::aligned_alloc(page, bytes));
  for (std::size_t i = 0; i < blocks; i += 2) {
    ASSERT_TRUE(nearfield_heap_contains(all[i], page));
    ASSERT_EQ(mmap(all[i], page, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), all[i]);
    std::memset(all[i] + page, 'a', page);
  }
  for (std::size_t i = 1; i < blocks; i += 2) {
    std::memset(all[i], 'b', page);
    std::free(all[i]);
  }
  for (std::size_t i = 0; i < blocks; i += 2) {
    EXPECT_FALSE(nearfield_heap_contains(all[i], page)) << i;
    std::free(all[i]);
  }
}

}  // namespace
