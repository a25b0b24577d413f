// What a fork does to the heap.
//
//   before, in the parent    lock; the region is no longer shared; ranges that peers are using now are asked for
//                            every other block is mapped again, private and copy on write, at the same place
//   fork
//   parent                   the region is retired; unlock. What stayed shared becomes private at the next fork
//   child                    replaces the ranges in use by private copies; the region is retired; unlock
//
// Remapping goes through the C library's mmap, so that caches of registered memory, which hook it, notice.
// vfork, posix_spawn and system never come here: their children share or replace all memory anyway.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "heap/heap.hpp"

namespace nearfield::heap {
namespace {

void note(const void* begin, std::size_t bytes, void*) {
  auto* const at = static_cast<std::byte*>(const_cast<void*>(begin));
  if (heap.in_flight_count == int(most_ranges)) return;
  const std::size_t before = reinterpret_cast<std::uintptr_t>(at) % page;
  heap.in_flight[heap.in_flight_count++] = {at - before, (before + bytes + page - 1) / page * page, -1, 0};
}

void give_up() {
  static constexpr char text[] = "nearfield: no room to keep the memory of parent and child apart at a fork\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  std::abort();
}

void leave_shared(const Range& range) {
  if (heap.to_copy_count == int(most_ranges)) give_up();
  heap.to_copy[heap.to_copy_count++] = range;
}

bool make_private(const Range& range) {
  return mmap(range.begin, range.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, range.fd,
              off_t(range.offset)) != MAP_FAILED;
}

// A part of the current region becomes a snapshot; what peers use, or what cannot be mapped so, the child copies.
void snapshot(std::size_t begin, std::size_t end, bool used_by_peers) {
  if (begin >= end) return;
  const Range range = {heap.blocks.base() + begin, end - begin, heap.blocks.fd(), begin};
  if (!used_by_peers && make_private(range)) return;
  leave_shared(range);
  if (heap.left_count == int(most_ranges)) give_up();
  heap.left[heap.left_count] = range;
  heap.left[heap.left_count++].fd = fcntl(heap.blocks.fd(), F_DUPFD_CLOEXEC, 0);
}

void prepare() {
  pthread_mutex_lock(&heap.mutex);
  heap.to_copy_count = heap.in_flight_count = 0;
  const bool any = heap.blocks.used_bytes() != 0;
  if (!any && heap.left_count == 0) return;
  if (any) heap.shared.store(false, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Team::expose, which notes, then asks
  if (heap.visit) heap.visit(note, nullptr);
  std::sort(heap.in_flight, heap.in_flight + heap.in_flight_count,
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  // What earlier forks left shared becomes private as soon as peers are through with it.
  for (int i = 0; i < heap.left_count;) {
    const Range range = heap.left[i];
    bool busy = false;
    for (int k = 0; k < heap.in_flight_count; ++k) busy |= heap.in_flight[k].overlaps(range);
    if (busy || !make_private(range)) {
      leave_shared(range);
      ++i;
    } else {
      close(range.fd);
      heap.left[i] = heap.left[--heap.left_count];
    }
  }
  if (!any) return;
  ++heap.forks;
  std::size_t done = 0;
  const std::size_t top = heap.blocks.top_bytes();
  for (int k = 0; k < heap.in_flight_count; ++k) {
    if (!heap.blocks.contains(heap.in_flight[k].begin)) continue;
    const auto begin = std::size_t(heap.in_flight[k].begin - heap.blocks.base());
    const std::size_t end = std::min(begin + heap.in_flight[k].bytes, top);
    snapshot(done, std::min(begin, top), false);
    snapshot(std::max(begin, done), end, true);
    done = std::max(done, end);
  }
  snapshot(done, top, false);
}

void retire() {
  heap.blocks.unmap_beyond_top();
  heap.blocks.close_file();
  heap.retired[heap.retired_count++] = heap.blocks;
  heap.blocks.forget();
}

void parent() {
  if (heap.blocks.used_bytes()) retire();
  pthread_mutex_unlock(&heap.mutex);
}

void child() {
  for (int i = 0; i < heap.to_copy_count; ++i) {
    const Range range = heap.to_copy[i];
    void* const copy = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) _exit(127);
    std::memcpy(copy, range.begin, range.bytes);
    if (mremap(copy, range.bytes, range.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, range.begin) == MAP_FAILED) _exit(127);
  }
  if (heap.blocks.used_bytes()) retire();
  else if (heap.blocks.exists()) heap.blocks.unmap();  // the parent goes on with the region
  heap.visit = nullptr;
  for (int i = 0; i < heap.left_count; ++i) close(heap.left[i].fd);
  heap.left_count = 0;
  pthread_mutex_unlock(&heap.mutex);
}

}  // namespace

void forget_left(const std::byte* begin, std::size_t bytes) {
  const Range block = {const_cast<std::byte*>(begin), bytes, -1, 0};
  for (int i = 0; i < heap.left_count;) {
    if (!heap.left[i].overlaps(block)) {
      ++i;
      continue;
    }
    close(heap.left[i].fd);
    heap.left[i] = heap.left[--heap.left_count];
  }
}

// At load, before any other library registers its handlers: those that run before the fork are through when ours takes
// the lock, and those that run after it find it free, so that all of them may allocate.
[[gnu::constructor]] static void watch_forks() { pthread_atfork(prepare, parent, child); }

}  // namespace nearfield::heap
