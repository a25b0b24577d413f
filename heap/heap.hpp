// The process's heap: the blocks of the current region, and those of regions that a fork has retired.
//
// A fork must give the child exactly the contents of that moment, and neither side may see what the other writes
// later. So right before it, under the lock, the region becomes private to the process, copy on write, and the child
// inherits that (fork.cpp). Peers can no longer reach its blocks; the next allocation begins a new region.
#pragma once
#include <pthread.h>

#include <atomic>

#include "heap/blocks.hpp"

namespace nearfield::heap {

inline constexpr std::size_t threshold = 32 << 10;  // bytes; shorter blocks are the next allocator's
inline constexpr int most_retired = 62;             // beyond it the heap is switched off
inline constexpr std::size_t most_ranges = 256;

struct Range {
  std::byte* begin;
  std::size_t bytes;
  int fd;  // of a range left shared at a fork: the file behind it, and where; else -1
  std::size_t offset;
  bool overlaps(const Range& other) const { return begin < other.begin + other.bytes && other.begin < begin + bytes; }
};

struct Heap {
  pthread_mutex_t mutex;
  // Whether the current region's blocks can be reached by peers; pairs with the fences of fork.cpp.
  std::atomic<bool> shared;
  std::atomic<bool> any;  // there is a region, current or retired: free() must look
  bool asked, off;        // settings read; switched off
  std::size_t keep, region_bytes;
  Blocks blocks;
  Blocks retired[most_retired];
  int retired_count;
  std::uint64_t generation, forks;
  void (*visit)(void (*keep)(const void*, std::size_t, void*), void*);
  Range in_flight[most_ranges];  // what peers use at this fork
  int in_flight_count;
  Range to_copy[most_ranges];  // what stays shared in the parent, so that the child must copy it
  int to_copy_count;
  Range left[most_ranges];  // what earlier forks have left shared
  int left_count;
};
extern Heap heap;  // zero at first: usable before any constructor has run

class Lock {
 public:
  Lock() { pthread_mutex_lock(&heap.mutex); }
  ~Lock() { pthread_mutex_unlock(&heap.mutex); }
  Lock(const Lock&) = delete;
};

// nullptr: the next allocator's. A block is page-aligned and peers can reach it.
void* allocate(std::size_t bytes, std::size_t alignment, bool zero);
// Of a block of ours, whole pages; 0 when p is none.
std::size_t length(const void* p);
bool free(void* p);  // false: not ours
bool resize(void* p, std::size_t bytes);

void forget_left(const std::byte* begin, std::size_t bytes);  // such a block goes

}  // namespace nearfield::heap
