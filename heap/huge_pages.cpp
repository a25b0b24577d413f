// Which blocks get huge pages, and when (engine/memory/collapsing.hpp says what that may cost).
//
//   when they are made      blocks of memory that is new, in programs that touch what they allocate: their huge pages
//                           replace small ones that would come anyway. What is freed shows whether they do
//   when messages use them  what peers have reached often enough to do so again: copies between huge pages take two
//                           thirds to four fifths of the time, and one fault in 512
//
// An extent counts when half of it belongs to the block or message. Its rest belongs to other blocks, which threads and
// peers write as they like: collapsing leaves contents alone.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "engine/memory/collapsing.hpp"
#include "heap/blocks.hpp"
#include "heap/limits.hpp"

namespace nearfield::heap {
namespace {

constexpr std::size_t sure = 16 << 20;  // bytes at once for which nobody is asked whether there is plenty
constexpr unsigned all_of_it = 256, dense_enough = all_of_it * 3 / 4;
constexpr std::uint8_t often = 16;  // uses of an extent by messages

// Nanoseconds that an extent's small pages take when they come one by one, as memory of malloc does.
std::uint64_t small_pages_take() {
  constexpr std::size_t tried = 256 << 10;
  void* const at = mmap(nullptr, tried, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 0;
  advise(at, tried, MADV_NOHUGEPAGE);
  const std::uint64_t begin = nanoseconds();
  advise(at, tried, MADV_POPULATE_WRITE);
  const std::uint64_t took = nanoseconds() - begin;
  munmap(at, tried);
  return took * (extent / tried);
}

}  // namespace

// The first ones of `count` extents; how many they were.
std::size_t Blocks::collapse_extents(std::size_t first, std::size_t count, std::uint64_t spared) {
  const std::size_t made = std::size_t(statistics_.huge_extents - given_back_) * extent;
  if (made >= eager_limit()) return 0;
  count = std::min(count, (eager_limit() - made) / extent);
  if (count * extent >= sure && !plenty(count * extent)) return 0;
  const memory::Collapsed done = memory::collapse(base_ + first * extent, extent, count, spared);
  for (std::size_t e = first; e < first + done.pages; ++e)
    extent_[e].huge = done.error ? Extent::refused : Extent::made;
  if (!done.error) statistics_.huge_extents += done.pages;
  else if (done.error == EINVAL && statistics_.huge_extents == 0) no_huge_ = true;  // before 6.1, or switched off
  return done.pages;
}

// [begin, end) is a new block, in pages that nobody has written.
void Blocks::make_huge(std::size_t begin, std::size_t end) {
  if (no_huge_ || dense_ < dense_enough || end - begin < extent) return;
  const std::size_t first = (begin + extent / 2) / extent, last = (end + extent / 2) / extent;
  static const std::uint64_t spared = small_pages_take();
  for (std::size_t e = first; e < last;) {
    std::size_t until = e;
    while (until < last && !extent_[until].huge) ++until;
    if (until > e && collapse_extents(e, until - e, spared) < until - e) return;
    e = until + 1;
  }
}

// Before a block is freed. Pages that a block before it had are taken for its own.
void Blocks::look_how_dense(std::size_t begin, std::size_t bytes) {
  constexpr std::size_t looks = 16;
  if (bytes < extent || no_huge_) return;
  unsigned there = 0;
  for (std::size_t i = 0; i < looks; ++i) {
    unsigned char resident = 0;
    mincore(base_ + begin + bytes / looks * i / page * page, page, &resident);
    there += resident & 1;
  }
  dense_ = (dense_ + there * unsigned(all_of_it / looks)) / 2;
}

void Blocks::note_use(std::size_t begin, std::size_t bytes) {
  if (no_huge_) return;
  const std::size_t first = (begin + extent / 2) / extent;
  const std::size_t last = std::min((begin + bytes + extent / 2) / extent, top_bytes() / extent);
  // Again and again, since it is not always to be had.
  auto due = [&](std::size_t e) { return !extent_[e].huge && extent_[e].uses && extent_[e].uses % often == 0; };
  for (std::size_t e = first; e < last; ++e)
    extent_[e].uses = std::uint8_t(extent_[e].uses < 2 * often ? extent_[e].uses + 1 : often + 1);
  for (std::size_t e = first; e < last; ++e) {
    std::size_t until = e;
    while (until < last && due(until)) ++until;
    if (until > e && collapse_extents(e, until - e, 0) < until - e) return;
    e = until;
  }
}

}  // namespace nearfield::heap
