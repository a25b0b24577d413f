// The allocator of the shared heap: blocks of whole pages in one sparse memfd, a region.
//
// A private table with one entry per page describes the blocks: peers cannot write to it, and blocks need no header
// that would disturb their alignment. A run is a row of pages, free or used. The entries of its first and last page
// hold its length, so that free() can merge neighbours. Lists ("bins") hold the free runs of one class of lengths.
//
//   base .. top             runs, free or used
//   top .. end of region    never used: zero, no memory; no access beyond the extent in which top lies
//
// Nothing here calls malloc. All functions expect the caller to hold the heap's lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "heap/heap.h"
#include "heap/system.hpp"

namespace nearfield::heap {

inline constexpr std::size_t page = 4096, extent = 2 << 20;

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

struct Statistics {
  std::uint64_t allocations, in_use, kept, highest, huge_extents;
};

// State of a region that a fork has retired (giving_back.cpp).
struct Retired {
  std::uint64_t since;   // number of that fork
  bool shared;           // peers were using a part of it at the fork; that part is still shared
  bool inherited;        // this process is the child: only the parent gives the memory back
  std::size_t cursor;    // offset up to which the region has been searched
  std::size_t data_end;  // offset at which the data found by the search end (SEEK_HOLE)
  std::uint32_t run;     // first page of the run at the cursor
};

class Blocks {
 public:
  // Creates the memfd, at most `bytes` long; false where the system refuses.
  bool create(std::size_t bytes, std::uint64_t generation);
  // Resets the object and leaves the mapping.
  void forget();

  bool exists() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }
  std::size_t used_bytes() const { return statistics_.in_use; }
  std::size_t top_bytes() const { return std::size_t(top_) * page; }
  File& file() { return file_; }
  std::uint64_t generation() const { return generation_; }
  const Statistics& statistics() const { return statistics_; }
  bool contains(const void* p) const {
    return std::size_t(static_cast<const std::byte*>(p) - base_) < size_ && base_ != nullptr;
  }

  // Returns whether any of these bytes lies in the region.
  bool meets(const void* at, std::size_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(at), base = reinterpret_cast<std::uintptr_t>(base_);
    return base_ && begin < base + size_ && (base <= begin || bytes > base - begin);
  }

  // Returns a block; nullptr: no room. `alignment` is a power of two. `is_zero` becomes whether the block is all zeros.
  void* allocate(std::size_t bytes, std::size_t alignment, bool& is_zero);
  // Returns the bytes, whole pages, of the block that begins at p; 0 if no block begins there.
  std::size_t length(const void* p) const;
  void free(void* p, std::size_t keep_at_most);
  bool resize(void* p, std::size_t bytes);  // in place

  // Notes that the program has changed the protection of these pages.
  void alter(const std::byte* begin, const std::byte* end);
  // Notes that the program maps something else over the pages between these two offsets (foreign.cpp).
  void leave(std::size_t begin, std::size_t end);
  bool has_foreign() const { return foreign_ != 0; }
  bool is_foreign(std::size_t begin, std::size_t end) const;  // whether any page between these offsets is
  bool punch(std::size_t begin, std::size_t bytes);           // frees these pages' memory; they read as zero

  // Notes that peers have read or written these bytes of a block (huge_pages.cpp).
  void note_use(std::size_t begin, std::size_t bytes);

  // Places new pages and moves existing ones. False: the kernel refuses.
  bool place(const nearfield_heap_placement& placement);

  // Frees a block of a retired region. Its pages become inaccessible at once.
  void drop(void* p);
  void unmap_beyond_top();  // nothing is allocated behind its last block any more
  void unmap();
  // Finds the run around `offset`, searching from the run that begins at page `run`; `run` is the found run's first
  // page afterwards.
  struct Run {
    std::size_t end;  // offset
    bool used;
  };
  Run run_at(std::size_t offset, std::uint32_t& run) const {
    while (std::size_t(run + entry_[run].pages) * page <= offset) run += entry_[run].pages;
    return {std::size_t(run + entry_[run].pages) * page, entry_[run].state == used};
  }
  Retired retired = {};

 private:
  enum State : std::uint8_t { unknown, used, dirty, clean };
  struct Entry {
    std::uint32_t pages;       // length of the run; valid at its first and last page
    std::uint32_t next, prev;  // first pages of the neighbours in the bin, each + 1; 0: there is none
    State state;               // at the first page
    std::uint8_t free_run;     // 1 at the first and last page of a free run
    std::uint8_t altered;      // at every page: 1 once the program has changed its protection
    std::uint8_t foreign;      // at every page: 1 while it is the program's (foreign.cpp)
  };
  static constexpr unsigned bins = 256;
  static unsigned bin_of(std::uint32_t pages);
  void link(std::uint32_t at, std::uint32_t pages, State state);
  void unlink(std::uint32_t at);
  void mark(std::uint32_t at, std::uint32_t pages, State state);
  std::uint32_t find(std::uint32_t pages, std::uint32_t align_pages, std::uint32_t& place);
  // huge_pages.cpp
  void make_huge(std::size_t begin, std::size_t end);
  void look_how_dense(std::size_t begin, std::size_t bytes);
  std::size_t collapse_extents(std::size_t first, std::size_t count, std::uint64_t spared);
  bool open_up(std::size_t bytes);
  void make_accessible(std::uint32_t at, std::uint32_t pages);
  bool take_back(std::uint32_t at, std::uint32_t pages);
  void end_at(std::size_t end, std::size_t from);
  void give_back(std::uint32_t at, std::uint32_t pages);

  std::byte* base_ = nullptr;
  std::size_t size_ = 0, room_ = 0;  // bytes that are mapped; bytes whose pages the tables describe
  std::size_t most_ = 0;             // longest block, in bytes
  File file_;
  std::uint64_t generation_ = 0;
  Entry* entry_ = nullptr;
  struct Extent {
    enum : std::uint8_t { no, made, refused } huge;  // refused: MADV_COLLAPSE of a range with this extent failed
    std::uint8_t uses;                               // number of uses by peers that note_use() has counted
    std::uint16_t foreign;                           // number of its pages that are the program's
  };
  Extent* extent_ = nullptr;
  std::uint32_t top_ = 0;  // pages
  bool no_huge_ = false;
  std::size_t open_ = 0;        // bytes from the base that may be accessed
  std::size_t altered_ = 0;     // pages whose protection the program has changed
  std::size_t foreign_ = 0;     // pages that are the program's
  std::size_t given_back_ = 0;  // extents that were huge until their memory was given back
  unsigned dense_ = 0;          // part of large blocks that is touched before they are freed, a moving mean; 256: all
  std::uint32_t bin_[bins] = {};
  std::uint64_t filled_[bins / 64] = {};
  Statistics statistics_ = {};
};

}  // namespace nearfield::heap
