// Gives back memory of regions that forks have retired.
//
// The parent and its children map a retired region privately, from one file. The kernel copies a page that one of them
// writes, and the file's page stays for the others; so do pages of freed blocks. Once no child is left, nobody needs
// those pages of the file that the parent has copied or freed, and they are punched out. When the program learns that a
// child has ended, we first copy pages that the parent has not written, up to a limit: its next store would copy them.
// Beyond the limit, calls that allocate or free copy extents which the parent has begun to write, from time to time.
// Pages that the parent only reads need no copy, since they exist only once.
//
//   parent, before a fork    makes a mark, an empty memfd, and maps it shared
//   fork                     the child and its children inherit the mapping, which exec or their end removes
//   parent, after the fork   unmaps the mark
//   later                    seals the mark against writing; the kernel refuses this while a process maps the mark
//
// An inherited descriptor cannot serve as a mark, since children that become daemons close all descriptors.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "heap/heap.hpp"
#include "heap/limits.hpp"

namespace nearfield::heap {
namespace {

constexpr std::uint64_t soonest = 10'000'000, latest = 1'000'000'000;  // nanoseconds between searches

std::uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000 + std::uint64_t(t.tv_nsec);
}

bool is_gone(Children& children) {
  const int fd = children.mark.get();
  return fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
}

// Returns the latest fork of which a child may be left; 0: none.
std::uint64_t latest_with_children() {
  std::uint64_t fork = 0;
  for (int i = 0; i < heap.children_count;) {
    Children& children = heap.children[i];
    if (is_gone(children)) {
      children.mark.close();
      children = heap.children[--heap.children_count];
    } else {
      fork = std::max(fork, children.fork);
      ++i;
    }
  }
  return fork;
}

const Piece* piece_at(const std::byte* at) {
  for (const Piece& piece : heap.pieces)
    if (piece.begin <= at && at < piece.end) return &piece;
  return nullptr;
}

// Returns whether the parent has a private copy of any page of [begin, end), an extent at most; true if unknown.
bool copied_in(const std::byte* begin, const std::byte* end, int pagemap) {
  constexpr std::uint64_t present = 1ull << 63, swapped = 1ull << 62, of_a_file = 1ull << 61;
  std::uint64_t* const entries = heap.texts.pagemap;
  const std::size_t bytes = std::size_t(end - begin) / page * sizeof *entries;
  if (descriptors::read_at(pagemap, entries, bytes,
                           off_t(reinterpret_cast<std::uintptr_t>(begin) / page * sizeof *entries)) != ssize_t(bytes))
    return true;
  return std::any_of(entries, entries + bytes / sizeof *entries,
                     [](std::uint64_t entry) { return entry & (present | swapped) && !(entry & of_a_file); });
}

// Searches from the cursor on, until `bytes` have been copied or the end is reached. Returns whether it gave anything
// back. Untouched pages get into the file when they are written; the next search finds them.
bool look_through(Blocks& blocks, std::size_t& bytes, bool all, int pagemap) {
  constexpr std::size_t looks_for_a_copy = 64;  // to search this many bytes costs as much as to copy one
  Retired& retired = blocks.retired;
  const int fd = blocks.file().get();
  bool asked = false, any = false;
  while (fd >= 0) {
    if (retired.cursor >= retired.data_end) {
      const off_t data = lseek(fd, off_t(retired.cursor), SEEK_DATA);
      if (data < 0) break;
      retired.cursor = std::size_t(data);
      retired.data_end = std::size_t(lseek(fd, data, SEEK_HOLE));  // the kernel walks over all pages up to there
    }
    if (retired.cursor >= blocks.top_bytes()) break;  // top_bytes() may have shrunk
    heap.pieces.cut(asked ? heap.pieces.size() : 0);
    if (!asked && !pieces_of(blocks.base(), blocks.base() + blocks.top_bytes(), heap.pieces)) break;
    asked = true;
    const std::size_t begin = retired.cursor;
    const Blocks::Run run = blocks.run_at(begin, retired.run);
    std::size_t end = std::min(retired.data_end, run.end);
    const Piece* const piece = run.used ? piece_at(blocks.base() + begin) : nullptr;
    bool nobodys = true;  // free, or the program has mapped something else there
    if (piece && blocks.file().is(piece->device, piece->inode)) {
      if (bytes == 0) return any;
      end = std::min({end, std::size_t(piece->end - blocks.base()), (begin / extent + 1) * extent});
      std::byte* const at = blocks.base() + begin;
      // Pages still shared with peers exist once only. Pages without write access stay.
      nobodys = !piece->shared && (all || copied_in(at, at + (end - begin), pagemap)) &&
                advise(at, end - begin, MADV_POPULATE_WRITE) == 0;
      const std::size_t cost = nobodys ? end - begin : (end - begin) / looks_for_a_copy;
      bytes -= std::min(bytes, std::max(cost, page));
    } else if (piece) {
      end = std::min(end, std::size_t(piece->end - blocks.base()));
    }
    if (nobodys) any |= blocks.punch(begin, end - begin);
    retired.cursor = end;
  }
  retired.cursor = retired.data_end = 0;
  retired.run = 0;
  return any;
}

}  // namespace

void expect_child() {
  Children* children = heap.children + heap.children_count;
  if (heap.children_count == most_children) {
    --children;  // shares the last mark
  } else {
    ++heap.children_count;
    const int fd = file_limit() < page ? -1 : descriptors::create_memory("nearfield-child");
    // without a mark the child counts as alive for ever
    children->mark = File(fd >= 0 && ftruncate(fd, page) == 0 ? fd : -1);
    if (fd >= 0 && children->mark.get() < 0) descriptors::close(fd);
  }
  children->fork = heap.forks;
  const int fd = children->mark.get();
  heap.mark = fd < 0 ? MAP_FAILED : mmap(nullptr, page, PROT_NONE, MAP_SHARED, fd, 0);
  if (heap.mark == MAP_FAILED) children->mark.close();
}

void child_is_born() {
  if (heap.mark && heap.mark != MAP_FAILED) munmap(heap.mark, page);
  heap.mark = nullptr;
  heap.interval = heap.next_look = 0;
}

void forget_children() {
  heap.mark = nullptr;  // the mapping stays, as the parent's mark
  for (int i = 0; i < heap.children_count; ++i) heap.children[i].mark.close();
  heap.children_count = 0;
  for (std::size_t i = 0; i < heap.retired.size(); ++i) {
    heap.retired[i].file().close();
    heap.retired[i].retired.inherited = true;
    heap.retired[i].retired.shared = false;
  }
  heap.unsettled.store(false, std::memory_order_relaxed);
}

void give_back_freed(Blocks& blocks, std::size_t begin, std::size_t bytes) {
  if (!blocks.retired.inherited && blocks.retired.since > latest_with_children()) blocks.punch(begin, bytes);
}

void give_back_retired(std::size_t bytes, bool all) {
  if (!heap.unsettled.load(std::memory_order_relaxed) || (!all && now() < heap.next_look)) return;
  const NoSignals none;
  const std::uint64_t fork = latest_with_children();
  const int pagemap = all ? -1 : descriptors::open_to_read("/proc/self/pagemap");
  bool any = false, given = false;
  for (std::size_t i = 0; i < heap.retired.size(); ++i) {
    Blocks& blocks = heap.retired[i];
    if (blocks.retired.inherited) continue;
    any = true;
    if (blocks.retired.since > fork) given |= look_through(blocks, bytes, all, pagemap);
  }
  if (pagemap >= 0) descriptors::close(pagemap);
  if (!any) heap.unsettled.store(false, std::memory_order_relaxed);
  heap.interval = given ? soonest : std::clamp(heap.interval * 2, soonest, latest);
  heap.next_look = now() + heap.interval;
}

}  // namespace nearfield::heap
