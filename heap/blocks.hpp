// The allocator of the shared heap: blocks of whole pages in one sparse memfd, a region.
//
// Bookkeeping lies in a private table with one entry per page, so that nothing a peer writes can break it and no
// header disturbs the alignment of blocks. The first and the last page of a run, free or used, hold its length, so
// that neighbours merge on free. Free runs hang in bins by length; a bitmap finds the next bin that has one.
//
//   base .. top             runs, free or used
//   top .. end of region    never used: zero, no memory, no access (but for the rest of an extent)
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
  bool shared;           // peers were using a part of it, which is still shared
  bool inherited;        // from the parent, which gives its memory back
  std::size_t cursor;    // offset up to which it has been searched
  std::size_t data_end;  // offset; holes before it stem from freed blocks only
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

  // Whether any of these bytes lie in it.
  bool meets(const void* at, std::size_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(at), base = reinterpret_cast<std::uintptr_t>(base_);
    return base_ && begin < base + size_ && (base <= begin || bytes > base - begin);
  }

  // `alignment`: a power of two. `is_zero`: set if the block has never been written. nullptr: no room.
  void* allocate(std::size_t bytes, std::size_t alignment, bool& is_zero);
  // Returns the bytes, whole pages, of the block that begins at p; 0: none does.
  std::size_t length(const void* p) const;
  void free(void* p, std::size_t keep_at_most);
  bool resize(void* p, std::size_t bytes);  // in place

  // Notes that the program has changed the protection of these pages.
  void alter(const std::byte* begin, const std::byte* end);
  // foreign.cpp. Leaves the pages from `begin` to `end`, offsets, to the program, which maps something else there.
  void leave(std::size_t begin, std::size_t end);
  bool has_foreign() const { return foreign_ != 0; }
  bool is_foreign(std::size_t begin, std::size_t end) const;  // any page of it
  bool punch(std::size_t begin, std::size_t bytes);           // frees these pages' memory; they read as zero

  // Notes that peers have read or written these bytes of a block (huge_pages.cpp).
  void note_use(std::size_t begin, std::size_t bytes);

  // Places new pages and moves existing ones. False: the kernel refuses.
  bool place(const nearfield_heap_placement& placement);

  // For a retired region, a snapshot: frees a block and its pages at once.
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
    std::uint32_t pages;       // length of the run; at its first and last page
    std::uint32_t next, prev;  // in the bin, + 1; 0: none
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
  std::size_t size_ = 0, room_ = 0;  // bytes that are mapped; bytes that the tables cover
  std::size_t most_ = 0;             // bytes of a block
  File file_;
  std::uint64_t generation_ = 0;
  Entry* entry_ = nullptr;
  struct Extent {
    enum : std::uint8_t { no, made, refused } huge;  // refused: a call that included it has failed
    std::uint8_t uses;                               // by messages
    std::uint16_t foreign;                           // pages
  };
  Extent* extent_ = nullptr;
  std::uint32_t top_ = 0;  // pages
  bool no_huge_ = false;
  std::size_t open_ = 0;        // bytes from the base that may be accessed
  std::size_t altered_ = 0;     // pages whose protection the program has changed
  std::size_t foreign_ = 0;     // pages that are the program's
  std::size_t given_back_ = 0;  // extents that were huge and are no more
  unsigned dense_ = 0;          // mean part of large blocks that is touched before they are freed, of 256
  std::uint32_t bin_[bins] = {};
  std::uint64_t filled_[bins / 64] = {};
  Statistics statistics_ = {};
};

}  // namespace nearfield::heap
