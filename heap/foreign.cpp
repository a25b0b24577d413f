// Pages of the current region that are the program's, since it has mapped something else over them or has unmapped them
// (interpose_mappings.cpp). Peers, who see the file, must not reach them.
//
//   pages of a block      are not described to peers nor made huge; free() maps the file there again
//   pages of a free run   count as a used block that nobody owns, so they are never allocated or freed
//   pages after all blocks    the region ends before them
#include <sys/mman.h>

#include <algorithm>

#include "heap/heap.hpp"

namespace nearfield::heap {

// Ends the region at `end`, behind all blocks; what has been mapped from `from` on is unmapped.
void Blocks::end_at(std::size_t end, std::size_t from) {
  if (end >= size_) return;
  if (from < size_) munmap(base_ + from, size_ - from);
  size_ = end;
  open_ = std::min(open_, size_);
}

void Blocks::leave(std::size_t begin, std::size_t end) {
  if (end > top_bytes()) {
    end_at(std::max(begin, top_bytes()), end);
    end = std::min(end, top_bytes());
  }
  if (begin >= end) return;
  const auto from = std::uint32_t(begin / page), to = std::uint32_t((end + page - 1) / page);
  for (std::uint32_t at = 0; at < to; at += entry_[at].pages) {
    const std::uint32_t behind = at + entry_[at].pages;
    if (behind <= from || !entry_[at].free_run) continue;
    const State state = entry_[at].state;
    const std::uint32_t first = std::max(at, from), last = std::min(behind, to);
    unlink(at);
    if (last < behind) link(last, behind - last, state);
    mark(first, last - first, used);
    statistics_.in_use += std::size_t(last - first) * page;
    if (at < first) {
      link(at, first - at, state);
      at = first;
    }
  }
  for (std::uint32_t i = from; i < to; ++i) {
    if (entry_[i].foreign) continue;
    entry_[i].foreign = 1;
    ++extent_[std::size_t(i) * page / extent].foreign;
    ++foreign_;
  }
}

bool Blocks::is_foreign(std::size_t begin, std::size_t end) const {
  end = std::min(end, top_bytes());
  for (std::size_t at = begin; foreign_ && at < end; at = (at / extent + 1) * extent) {
    if (!extent_[at / extent].foreign) continue;
    for (std::size_t i = at / page; i < (at / extent + 1) * (extent / page) && i * page < end; ++i)
      if (entry_[i].foreign) return true;
  }
  return false;
}

// Returns false if the kernel refuses to map the file, or the program has closed it.
bool Blocks::take_back(std::uint32_t at, std::uint32_t pages) {
  for (std::uint32_t i = at; i < at + pages; ++i) {
    if (!entry_[i].foreign) continue;
    std::uint32_t end = i;
    while (end < at + pages && entry_[end].foreign) ++end;
    const std::size_t begin = std::size_t(i) * page, bytes = std::size_t(end - i) * page;
    const int fd = file_.get();
    if (fd < 0 || mmap(base_ + begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
                       off_t(begin)) == MAP_FAILED)
      return false;
    for (; i < end; ++i) {
      entry_[i].foreign = 0;
      --extent_[std::size_t(i) * page / extent].foreign;
      --foreign_;
    }
  }
  return true;
}

}  // namespace nearfield::heap
