// Huge pages for blocks (engine/memory/collapsing.hpp bounds their time).
//
//   at allocation   blocks of new memory get them in programs that touch what they allocate, since such programs would
//                   get all the small pages anyway. Freed blocks are sampled to learn whether the program is one
//   by messages     extents that peers have accessed often get them: a copy between huge pages takes two thirds to four
//                   fifths of the time, and causes one page fault where small pages cause 512
//
// An extent is made huge if half of it belongs to the block or message. The rest may belong to other blocks, which
// threads and peers may write at the same time: collapsing keeps the contents.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "heap/heap.hpp"
#include "heap/limits.hpp"

namespace nearfield::heap {
namespace {

constexpr std::size_t sure = 16 << 20;  // bytes from which on free memory is checked
constexpr unsigned all_of_it = 256, dense_enough = all_of_it * 3 / 4;
constexpr std::uint8_t often = 16;  // uses of an extent by messages

// Measures the nanoseconds that an extent's small pages take when they come one by one, as memory of malloc does.
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

// Makes the first of `count` extents huge; returns how many.
std::size_t Blocks::collapse_extents(std::size_t first, std::size_t count, std::uint64_t spared) {
  const std::size_t made = std::size_t(statistics_.huge_extents - given_back_) * extent;
  if (made >= eager_limit()) return 0;
  count = std::min(count, (eager_limit() - made) / extent);
  if (count * extent >= sure && !plenty(count * extent)) return 0;
  const memory::Collapsed done = memory::collapse(heap.collapsing, base_ + first * extent, extent, count, spared);
  for (std::size_t e = first; e < first + done.pages; ++e)
    extent_[e].huge = done.error ? Extent::refused : Extent::made;
  if (!done.error) statistics_.huge_extents += done.pages;
  else if (done.error == EINVAL && statistics_.huge_extents == 0) no_huge_ = true;  // before 6.1, or switched off
  return done.pages;
}

// pre: [begin, end) is a new block of pages never written.
void Blocks::make_huge(std::size_t begin, std::size_t end) {
  if (no_huge_ || dense_ < dense_enough || end - begin < extent) return;
  const std::size_t first = (begin + extent / 2) / extent, last = (end + extent / 2) / extent;
  static const std::uint64_t spared = small_pages_take();
  for (std::size_t e = first; e < last;) {
    std::size_t until = e;
    while (until < last && !extent_[until].huge && !extent_[until].foreign) ++until;
    if (until > e && collapse_extents(e, until - e, spared) < until - e) return;
    e = until + 1;
  }
}

// Called before a block is freed: samples which of its pages exist. Pages that stem from an earlier block count, too.
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
  // An extent is due again every `often` uses, since making it huge is not permitted at all times.
  auto due = [&](std::size_t e) {
    return !extent_[e].huge && !extent_[e].foreign && extent_[e].uses && extent_[e].uses % often == 0;
  };
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
