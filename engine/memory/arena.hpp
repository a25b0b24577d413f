// Allocation of offsets inside one's own segment: best fit over free ranges, neighbours merged on free.
//
// All bookkeeping is private to the owner and lies outside the segment, so nothing that a peer writes can break it,
// and a peer that dies leaves no lock behind. Space is reserved (Segment::reserve) before it is handed out.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "engine/memory/segment.hpp"

namespace nearfield::memory {

class Arena {
 public:
  // Serves [begin, end of the segment). The segment must outlive the arena.
  Arena(Segment& segment, std::size_t begin);

  // Offset of `bytes` bytes (rounded up to 64) at a multiple of `align` (a power of two). Content is unspecified.
  Result<std::size_t> allocate(std::size_t bytes, std::size_t align);
  Result<std::size_t> allocate_zeroed(std::size_t bytes, std::size_t align);
  void free(std::size_t offset);

  std::size_t in_use() const;    // bytes handed out
  std::size_t reserved() const;  // bytes with memory behind them
  // Length of the allocation that begins at `offset`, 0 when there is none.
  std::size_t length(std::size_t offset) const;

 private:
  void add_free(std::size_t offset, std::size_t bytes);
  void remove_free(std::map<std::size_t, std::size_t>::iterator range);

  Segment& segment_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;                       // offset -> length, below top_, all reserved
  std::set<std::pair<std::size_t, std::size_t>> free_by_length_;  // (length, offset)
  std::map<std::size_t, std::size_t> used_;                       // offset -> length
  std::size_t begin_, top_;  // [begin_, top_) is handed out or free; beyond top_ nothing is reserved
  std::size_t in_use_ = 0;
};

}  // namespace nearfield::memory
