// The process's heap: the blocks of the current region, and those of regions that a fork has retired.
//
// A fork must give the child exactly the contents of that moment, and neither side may see what the other writes
// later. So right before it, under the lock, the region becomes private to the process, copy on write, and the child
// inherits that (fork.cpp). Peers can no longer reach its blocks; the next allocation begins a new region.
#pragma once
#include <atomic>

#include "heap/blocks.hpp"
#include "heap/mutex.hpp"
#include "heap/system.hpp"

namespace nearfield::heap {

inline constexpr std::size_t threshold = 32 << 10;  // bytes; shorter blocks are the next allocator's
inline constexpr int most_retired = 62;             // beyond it the heap is switched off

struct Range {
  std::byte *begin, *end;
};

// What a forked child puts in the place of a range that the parent goes on sharing with its peers.
struct Copy {
  Range range;
  int protection;
  void* contents;  // nullptr: there was no memory for it
};

// Children of one fork, or of some, and theirs: `mark` is a memfd of which they inherit a mapping (giving_back.cpp).
struct Children {
  File mark;
  std::uint64_t fork;  // the latest of theirs
};
inline constexpr int most_children = 64;

struct Heap {
  Mutex mutex = {};
  // Whether the current region's blocks can be reached by peers; pairs with the fences of fork.cpp.
  std::atomic<bool> shared = false;
  std::atomic<bool> any = false;        // there is a region, current or retired: free() must look
  std::atomic<bool> unsettled = false;  // there are retired regions of our own, which may have memory to give back
  bool asked = false, off = false;      // settings read; switched off
  std::size_t keep = 0, region_bytes = 0;
  std::atomic<int> pauses = 0;  // in which nothing new is served
  bool placed = false;          // as `placement` says
  nearfield_heap_placement placement = {};
  Blocks blocks;
  Blocks retired[most_retired];
  int retired_count = 0;
  std::uint64_t generation = 0, forks = 0;
  void (*visit)(void (*keep)(const void*, std::size_t, void*), void*) = nullptr;

  // Of the fork that is under way.
  Table<Range> in_flight;  // what peers use
  Table<Piece> pieces;
  Table<Copy> copies;
  void* mark = nullptr;                    // our mapping of the child's mark
  enum { no, yes, in_child } retire = no;  // when the call that the fork's signal handler has interrupted is through

  Children children[most_children] = {};
  int children_count = 0;
  std::uint64_t next_look = 0, interval = 0;  // nanoseconds: when to look again what can be given back
};
// No code makes it: libraries that are constructed before this one have allocated from it by then.
extern constinit Heap heap;

// `held`: false in code that runs inside a call of this thread that holds the lock (Mutex), and has to do without.
class Lock {
 public:
  Lock() : held_(!heap.mutex.mine()) {
    if (held_) heap.mutex.lock();
  }
  ~Lock() {
    if (held_) release();
  }
  Lock(const Lock&) = delete;
  bool held() const { return held_; }
  static void release();

 private:
  bool held_;
};

// nullptr: the next allocator's. A block is page-aligned and peers can reach it.
void* allocate(std::size_t bytes, std::size_t alignment, bool zero);
// Of a block of ours, whole pages; 0 when p is none.
std::size_t length(const void* p);
bool free(void* p);  // false: not ours
bool resize(void* p, std::size_t bytes);

// Of the current or a retired region; nullptr: none of ours. Under the lock, as all below.
Blocks* owner(const void* p);

// fork.cpp: the current region becomes a snapshot of what was there.
void retire(bool in_child);

// giving_back.cpp
void expect_child();     // before a fork
void child_is_born();    // after it, in the parent
void forget_children();  // after it, in the child
// Gives back what retired regions hold twice, or for nobody, once the children that may need it are gone; copies
// `bytes` at most. `all`: also where the parent has not written yet; else it looks now and then only.
void give_back_retired(std::size_t bytes, bool all);
void give_back_freed(Blocks& blocks, std::size_t begin, std::size_t bytes);  // a block of a retired region

}  // namespace nearfield::heap
