#include "heap/blocks.hpp"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/memory/madvise.hpp"
#include "heap/limits.hpp"

namespace nearfield::heap {
namespace {

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

void* map_private(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  advise(at, bytes, MADV_DONTDUMP);  // keeps sparse tables out of core files
  return at;
}

}  // namespace

bool Blocks::create(std::size_t bytes, std::uint64_t generation) {
  bytes = std::min(bytes, file_limit());
  constexpr std::size_t smallest = 1u << 30;
  for (bytes = bytes / extent * extent; bytes >= smallest; bytes = bytes / 2 / extent * extent) {
    const int fd = descriptors::create_memory("nearfield-heap");
    if (fd < 0) return false;
    // Reserves an extent more, so that the region can begin at a multiple of an extent.
    auto* const at = static_cast<std::byte*>(
        mmap(nullptr, bytes + extent, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    const bool placed = at != MAP_FAILED;
    std::byte* const aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(at), extent));
    // Without access at first (open_up), since mlockall would make every page of an accessible mapping.
    if (placed && ftruncate(fd, off_t(bytes)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
        mmap(aligned, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) != MAP_FAILED) {
      auto* const entries = static_cast<Entry*>(map_private(bytes / page * sizeof(Entry)));
      auto* const extents = static_cast<Extent*>(map_private(bytes / extent * sizeof(Extent)));
      if (entries && extents) {
        advise(aligned, bytes, MADV_DONTDUMP);
        if (aligned > at) munmap(at, std::size_t(aligned - at));
        if (at + extent > aligned) munmap(aligned + bytes, std::size_t(at + extent - aligned));
        forget();
        size_ = room_ = bytes;
        most_ = bytes / 4;
        file_ = File(fd);
        generation_ = generation;
        entry_ = entries;
        extent_ = extents;
        std::atomic_signal_fence(std::memory_order_release);  // a fork in a signal handler calls exists()
        base_ = aligned;
        return true;
      }
    }
    if (placed) munmap(at, bytes + extent);
    descriptors::close(fd);
  }
  return false;
}

void Blocks::forget() { std::memset(static_cast<void*>(this), 0, sizeof *this); }

// Lengths up to 64 pages have bins of their own, longer ones eight to every power of two.
unsigned Blocks::bin_of(std::uint32_t pages) {
  if (pages <= 64) return pages - 1;
  const unsigned log = 31 - unsigned(__builtin_clz(pages));
  return 64 + (log - 6) * 8 + (pages >> (log - 3) & 7);
}

void Blocks::mark(std::uint32_t at, std::uint32_t pages, State state) {
  const std::uint8_t free_run = state != used;
  entry_[at].pages = entry_[at + pages - 1].pages = pages;
  entry_[at].free_run = entry_[at + pages - 1].free_run = free_run;
  entry_[at].state = state;
}

void Blocks::link(std::uint32_t at, std::uint32_t pages, State state) {
  mark(at, pages, state);
  const unsigned bin = bin_of(pages);
  entry_[at].prev = 0;
  entry_[at].next = bin_[bin];
  if (bin_[bin]) entry_[bin_[bin] - 1].prev = at + 1;
  bin_[bin] = at + 1;
  filled_[bin / 64] |= std::uint64_t{1} << bin % 64;
  if (state == dirty) statistics_.kept += std::size_t(pages) * page;
}

void Blocks::unlink(std::uint32_t at) {
  Entry& entry = entry_[at];
  const unsigned bin = bin_of(entry.pages);
  if (entry.prev) entry_[entry.prev - 1].next = entry.next;
  else bin_[bin] = entry.next;
  if (entry.next) entry_[entry.next - 1].prev = entry.prev;
  if (!bin_[bin]) filled_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
  if (entry.state == dirty) statistics_.kept -= std::size_t(entry.pages) * page;
}

// Finds a free run that holds `pages` pages at a multiple of `align_pages` (from the region's base, which is a multiple
// of an extent). Returns the run's first page + 1, and in `place` the first such page in it; returns 0 if none fits.
std::uint32_t Blocks::find(std::uint32_t pages, std::uint32_t align_pages, std::uint32_t& place) {
  unsigned bin = bin_of(pages);
  while (bin < bins) {
    const std::uint64_t here = filled_[bin / 64] >> bin % 64;
    if (!here) {
      bin = (bin / 64 + 1) * 64;
      continue;
    }
    bin += unsigned(__builtin_ctzll(here));
    int looked = 0;
    for (std::uint32_t run = bin_[bin]; run && looked < 16; run = entry_[run - 1].next, ++looked) {
      const std::uint32_t at = run - 1;
      place = std::uint32_t(round_up(at, align_pages));
      if (place + pages <= at + entry_[at].pages) return run;
    }
    ++bin;
  }
  return 0;
}

void* Blocks::allocate(std::size_t bytes, std::size_t alignment, bool& is_zero) {
  if (bytes > most_ || alignment > extent) return nullptr;  // regions begin at a multiple of an extent
  // Large blocks begin at an extent's boundary, and end at one if that wastes little.
  if (bytes >= extent * 3 / 4) alignment = std::max(alignment, extent);
  std::size_t length = round_up(std::max<std::size_t>(bytes, 1), page);
  if (round_up(length, extent) - length < length / 8 && bytes >= extent * 3 / 4) length = round_up(length, extent);
  const auto pages = std::uint32_t(length / page);
  const auto align_pages = std::uint32_t(std::max<std::size_t>(alignment / page, 1));
  std::uint32_t place = 0;
  is_zero = true;
  if (const std::uint32_t run = find(pages, align_pages, place)) {
    const std::uint32_t at = run - 1, end = at + entry_[at].pages;
    const State state = entry_[at].state;
    unlink(at);
    if (place > at) link(at, place - at, state);
    if (end > place + pages) link(place + pages, end - place - pages, state);
    is_zero = state == clean;
  } else {
    place = std::uint32_t(round_up(top_, align_pages));
    if ((std::size_t(place) + pages) * page > size_ || !open_up((std::size_t(place) + pages) * page)) return nullptr;
    if (place > top_) link(top_, place - top_, clean);
    top_ = place + pages;
  }
  mark(place, pages, used);
  ++statistics_.allocations;
  statistics_.in_use += length;
  statistics_.highest = std::max(statistics_.highest, statistics_.in_use + statistics_.kept);
  const std::size_t begin = std::size_t(place) * page;
  if (is_zero) make_huge(begin, begin + length);
  return base_ + begin;
}

// Makes the first `bytes` accessible and part of core files. The rest stays out: writing a core file would make all its
// pages.
bool Blocks::open_up(std::size_t bytes) {
  if (bytes <= open_) return true;
  const std::size_t wanted = std::min(round_up(bytes, extent), size_);
  if (protect(base_ + open_, wanted - open_, PROT_READ | PROT_WRITE)) return false;
  advise(base_ + open_, wanted - open_, MADV_DODUMP);
  open_ = wanted;
  return true;
}

std::size_t Blocks::length(const void* p) const {
  const std::size_t offset = std::size_t(static_cast<const std::byte*>(p) - base_);
  const std::size_t at = offset / page;
  if (offset % page || at >= top_ || entry_[at].state != used) return 0;
  return std::size_t(entry_[at].pages) * page;
}

bool Blocks::punch(std::size_t begin, std::size_t bytes) {
  const int fd = file_.get();
  // madvise does it, too, while the mapping is shared and writable.
  if (fd < 0) return advise(base_ + begin, bytes, MADV_REMOVE) == 0;
  return descriptors::allocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(begin), off_t(bytes)) == 0;
}

bool Blocks::place(const nearfield_heap_placement& placement) {
  constexpr std::size_t most_nodes = 8 * sizeof placement.nodes;
  auto prefer = [](void* at, std::size_t bytes, const std::uint64_t* nodes) {
    int count = 0;
    for (std::size_t i = 0; i < most_nodes / 64; ++i) count += __builtin_popcountll(nodes[i]);
    if (bytes == 0 || count == 0) return true;
    // Never bound, since the kernel kills a process whose node is full. The kernel uses one bit less than the argument
    // says.
    const int mode = count == 1 ? MPOL_PREFERRED : MPOL_INTERLEAVE;
    return syscall(SYS_mbind, at, bytes, mode, nodes, most_nodes + 1, MPOL_MF_MOVE) == 0;
  };
  const std::size_t first = placement.most < size_ ? placement.most / page * page : size_;
  std::uint64_t rest[most_nodes / 64] = {};
  if (placement.rest >= 0 && std::size_t(placement.rest) < most_nodes)
    rest[placement.rest / 64] = std::uint64_t{1} << placement.rest % 64;
  return prefer(base_, first, placement.nodes) && prefer(base_ + first, size_ - first, rest);
}

void Blocks::give_back(std::uint32_t at, std::uint32_t pages) {
  const std::size_t begin = std::size_t(at) * page, bytes = std::size_t(pages) * page;
  if (!punch(begin, bytes)) return;
  for (std::size_t e = begin / extent; e * extent < begin + bytes; ++e) {  // `foreign` stays: other blocks' pages count
    given_back_ += extent_[e].huge == Extent::made;
    extent_[e].huge = Extent::no;
    extent_[e].uses = 0;
  }
  unlink(at);
  while (at > 0 && entry_[at - 1].free_run && entry_[at - entry_[at - 1].pages].state == clean) {
    at -= entry_[at - 1].pages;
    pages += entry_[at].pages;
    unlink(at);
  }
  if (at + pages < top_ && entry_[at + pages].free_run && entry_[at + pages].state == clean) {
    const std::uint32_t after = at + pages;
    pages += entry_[after].pages;
    unlink(after);
  }
  link(at, pages, clean);
}

void Blocks::free(void* p, std::size_t keep_at_most) {
  auto at = std::uint32_t(std::size_t(static_cast<std::byte*>(p) - base_) / page);
  std::uint32_t pages = entry_[at].pages;
  if (foreign_ && !take_back(at, pages)) return;  // the block is lost
  statistics_.in_use -= std::size_t(pages) * page;
  look_how_dense(std::size_t(at) * page, std::size_t(pages) * page);
  entry_[at].state = unknown;
  if (altered_) make_accessible(at, pages);
  // Clean runs beside it stay separate, since merging would lose that they are zero.
  if (at > 0 && entry_[at - 1].free_run) {
    const std::uint32_t before = at - entry_[at - 1].pages;
    if (entry_[before].state == dirty) {
      unlink(before);
      pages += entry_[before].pages;
      at = before;
    }
  }
  const std::uint32_t after = at + pages;
  if (after < top_ && entry_[after].free_run && entry_[after].state == dirty) {
    unlink(after);
    pages += entry_[after].pages;
    entry_[after].state = unknown;
  }
  link(at, pages, dirty);
  if (statistics_.kept > keep_at_most) give_back(at, pages);
}

bool Blocks::resize(void* p, std::size_t bytes) {
  const auto at = std::uint32_t(std::size_t(static_cast<std::byte*>(p) - base_) / page);
  const std::uint32_t pages = entry_[at].pages;
  if (bytes > size_) return false;  // also what overflows
  const auto wanted = std::uint32_t(round_up(bytes, page) / page);
  if (wanted <= pages) return wanted > pages / 2;  // otherwise moving saves memory
  const std::uint32_t more = wanted - pages, after = at + pages;
  if (after == top_) {
    if (std::size_t(after + more) * page > size_ || !open_up(std::size_t(after + more) * page)) return false;
    top_ += more;
  } else {
    if (!entry_[after].free_run || entry_[after].pages < more) return false;
    const std::uint32_t length = entry_[after].pages;
    const State state = entry_[after].state;
    unlink(after);
    entry_[after].state = unknown;
    entry_[after].free_run = 0;
    if (length > more) link(after + more, length - more, state);
  }
  entry_[at + pages - 1].free_run = 0;
  mark(at, wanted, used);
  statistics_.in_use += std::size_t(more) * page;
  statistics_.highest = std::max(statistics_.highest, statistics_.in_use + statistics_.kept);
  return true;
}

void Blocks::alter(const std::byte* begin, const std::byte* end) {
  const std::size_t from = std::size_t(begin - base_) / page, to = std::size_t(end - base_) / page;
  for (std::size_t at = from; at < std::min<std::size_t>(to, top_); ++at) {
    altered_ += entry_[at].altered == 0;
    entry_[at].altered = 1;
  }
}

// Restores access that the program has changed, for the next owner of the pages.
void Blocks::make_accessible(std::uint32_t at, std::uint32_t pages) {
  bool any = false;
  for (std::uint32_t i = at; i < at + pages; ++i) {
    any |= entry_[i].altered != 0;
    altered_ -= entry_[i].altered;
    entry_[i].altered = 0;
  }
  if (any) protect(base_ + std::size_t(at) * page, std::size_t(pages) * page, PROT_READ | PROT_WRITE);
}

void Blocks::drop(void* p) {
  const std::size_t bytes = length(p);
  statistics_.in_use -= bytes;
  entry_[std::size_t(static_cast<std::byte*>(p) - base_) / page].state = unknown;
  mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void Blocks::unmap_beyond_top() {
  end_at(top_bytes(), top_bytes());
  const auto cut = [](void* table, std::size_t before, std::size_t after) {
    const auto begin = reinterpret_cast<std::uintptr_t>(table);
    const std::uintptr_t from = round_up(begin + after, page);
    if (from < begin + before) munmap(reinterpret_cast<void*>(from), begin + before - from);
  };
  cut(entry_, room_ / page * sizeof(Entry), top_ * sizeof(Entry));
  cut(extent_, room_ / extent * sizeof(Extent), (top_bytes() / extent + 2) * sizeof(Extent));
  room_ = size_;
}

void Blocks::unmap() {
  munmap(base_, size_);
  munmap(entry_, room_ / page * sizeof(Entry));
  munmap(extent_, room_ / extent * sizeof(Extent));
  file_.close();
  forget();
}

}  // namespace nearfield::heap
