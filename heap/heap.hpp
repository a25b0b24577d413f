// The process's heap: blocks of the current region, and of regions that forks have retired.
//
// A fork must give the child exactly the contents of that moment, and neither side may see what the other writes
// later. So right before it, under the lock, the region becomes private to the process, copy on write, and the child
// inherits that (fork.cpp). Peers can no longer reach its blocks; the next allocation begins a new region.
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>

#include "engine/memory/collapsing.hpp"
#include "heap/blocks.hpp"
#include "heap/kept.hpp"
#include "heap/mutex.hpp"
#include "heap/system.hpp"

namespace nearfield::heap {

inline constexpr std::size_t threshold = 32 << 10;  // bytes; shorter blocks come from the next allocator
inline constexpr std::size_t most_open = 62;        // files of retired regions; memory of older ones is not given back

struct Range {
  std::byte *begin, *end;
};

// Copy for a forked child of a range that the parent still shares with its peers.
struct Copy {
  Range range;
  int protection;
  void* contents;  // nullptr: there was no memory for it
};

// The children of one fork, or of several. They inherit a mapping of `mark`, a memfd (giving_back.cpp).
struct Children {
  File mark;
  std::uint64_t fork;  // the latest of these forks
};
inline constexpr int most_children = 64;

// The functions that ours replace (interpose.cpp): the C library's, or those of a library that is loaded before it.
struct NextAllocator {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);
  std::size_t (*usable)(void*);
  std::atomic<int> state;  // 0 unknown, 1 being looked up, 2 known
  // Serves allocations while they are being looked up; never freed.
  alignas(64) char early[64 << 10];
  std::atomic<std::size_t> early_used;
};

// The functions that those of interpose_memory.cpp replace.
struct NextWaits {
  pid_t (*wait4)(pid_t, int*, int, rusage*);
  pid_t (*waitpid)(pid_t, int*, int);
  int (*waitid)(idtype_t, id_t, siginfo_t*, int);
};

// The functions that those of interpose_mappings.cpp replace.
struct NextMappings {
  void* (*mmap)(void*, std::size_t, int, int, int, off_t);
  int (*munmap)(void*, std::size_t);
  void* (*mremap)(void*, std::size_t, std::size_t, int, ...);
  void* (*shmat)(int, const void*, int);
};

// Buffers for texts of files in /proc. They would be too large for small stacks.
struct Texts {
  static constexpr std::size_t longest = 4096;  // of a path
  char path[longest], groups[2 * longest];
  std::uint64_t pagemap[extent / page];
};

struct Heap {
  Mutex mutex = {};
  // True if peers can reach the current region's blocks; ordered by the fence of fork.cpp.
  std::atomic<bool> shared = false;
  std::atomic<bool> any = false;        // there is a region, current or retired
  std::atomic<bool> foreign = false;    // pages of the current region may be the program's
  std::atomic<bool> unsettled = false;  // retired regions of this process may have memory to give back
  bool asked = false, off = false;      // settings read; switched off
  std::size_t keep = 0, region_bytes = 0;
  std::atomic<int> pauses = 0;        // while positive, no allocation is served
  std::atomic<bool> limited = false;  // the program has limited its address space: no region begins
  bool placed = false;                // `placement` is valid
  nearfield_heap_placement placement = {};
  Blocks blocks;
  Table<Blocks> retired;
  std::uint64_t generation = 0, forks = 0;
  void (*visit)(void (*keep)(const void*, std::size_t, void*), void*) = nullptr;

  Table<KeptRange> kept;
  std::atomic<bool> any_kept = false;  // `kept` has had an entry; read without the lock
  bool all_locked = false;             // by mlockall
  bool kept_unknown = false;           // the table lacks entries, since there was no memory for them
  File spare;                          // closed to open a file of /proc when the program has no descriptor left

  // State of the fork that is under way.
  Table<Range> in_flight;  // ranges that peers use
  Table<Piece> pieces;
  Table<Copy> copies;
  bool interrupted = false;                // the fork runs in a handler that has interrupted a call that holds the lock
  bool retiring = false;                   // the fork retires the current region
  sigset_t signals_before = {};            // blocked signals: no handler forks before this fork is over
  void* mark = nullptr;                    // our mapping of the child's mark
  enum { no, yes, in_child } retire = no;  // what the interrupted call has to do at its end: a handler has forked in it

  Children children[most_children] = {};
  int children_count = 0;
  std::uint64_t next_look = 0, interval = 0;  // nanoseconds: time of the next search for memory to give back

  memory::Allowance collapsing;
  Texts texts = {};
  NextAllocator next_allocator = {};  // not under the lock
  NextWaits next_waits = {};
  NextMappings next_mappings = {};
  pid_t (*next_fork)() = nullptr;  // _Fork (fork.cpp)
};
// Constant-initialised, since libraries that are constructed earlier allocate from it.
extern constinit Heap heap;

// held() is false if a call further up this thread's stack holds the lock (Mutex). Such code runs without taking it.
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

// Returns a page-aligned block that peers can reach, or nullptr if the next allocator must serve the call.
void* allocate(std::size_t bytes, std::size_t alignment, bool zero);
// Returns the bytes, whole pages, of the block that begins at p; 0 if no block begins there.
std::size_t length(const void* p);
bool free(void* p);  // false: p is no block
bool resize(void* p, std::size_t bytes);

// Returns the current or retired region that holds p; may be null. pre, also of all below: the lock is held.
Blocks* owner(const void* p);

// Opens a file of /proc, even if the program has used up its descriptors. Returns -1 if it cannot be opened.
int open_in_proc(const char* path);

// fork.cpp: the current region becomes a retired one, a snapshot.
void retire(bool in_child);

// giving_back.cpp
void expect_child();     // before a fork
void child_is_born();    // after it, in the parent
void forget_children();  // after it, in the child
// Gives back pages of retired regions' files that nobody needs once the children have ended. Copies at most `bytes`.
// `all`: also copies pages that the parent has not written yet. Without it, a call returns at once if the last search
// was too recent.
void give_back_retired(std::size_t bytes, bool all);
void give_back_freed(Blocks& blocks, std::size_t begin, std::size_t bytes);  // a block of a retired region

}  // namespace nearfield::heap
