// What a fork does to the heap.
//
//   before, in the parent    lock; the region is no longer shared; ranges that peers are using now are asked for
//                            every other block is mapped again, private and copy on write, at the same place
//   fork
//   parent                   the region is retired; unlock
//   child                    replaces the ranges in use by private copies; the region is retired; unlock
//
// Remapping goes through the C library's mmap, so that caches of registered memory, which hook it, notice.
// vfork, posix_spawn and system never come here: their children share or replace all memory anyway.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "heap/heap.hpp"

namespace nearfield::heap {
namespace {

void note(const void* begin, std::size_t bytes, void*) {
  auto* const at = static_cast<std::byte*>(const_cast<void*>(begin));
  if (!heap.blocks.contains(at) || heap.to_copy_count == int(most_ranges)) return;
  const std::size_t offset = std::size_t(at - heap.blocks.base()) / page * page;
  const std::size_t end = (std::size_t(at - heap.blocks.base()) + bytes + page - 1) / page * page;
  heap.to_copy[heap.to_copy_count++] = {heap.blocks.base() + offset, end - offset};
}

// [offset, offset + bytes) as a snapshot; what cannot be mapped so is copied by the child.
void make_private(std::size_t offset, std::size_t bytes) {
  if (!bytes) return;
  std::byte* const at = heap.blocks.base() + offset;
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, heap.blocks.fd(),
           off_t(offset)) == MAP_FAILED) {
    if (heap.to_copy_count == int(most_ranges)) {
      static constexpr char text[] = "nearfield: no room to keep the memory of parent and child apart at a fork\n";
      (void)!write(STDERR_FILENO, text, sizeof text - 1);
      std::abort();
    }
    heap.to_copy[heap.to_copy_count++] = {at, bytes};
  }
}

void prepare() {
  pthread_mutex_lock(&heap.mutex);
  heap.to_copy_count = 0;
  if (heap.blocks.used_bytes() == 0) return;
  ++heap.forks;
  heap.shared.store(false, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in Team::meet_exposed
  if (heap.visit) heap.visit(note, nullptr);
  const int in_use = heap.to_copy_count;
  std::sort(heap.to_copy, heap.to_copy + in_use, [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::size_t done = 0;
  for (int i = 0; i < in_use; ++i) {
    const auto begin = std::size_t(heap.to_copy[i].begin - heap.blocks.base());
    if (begin > done) make_private(done, begin - done);
    done = std::max(done, begin + heap.to_copy[i].bytes);
  }
  if (heap.blocks.top_bytes() > done) make_private(done, heap.blocks.top_bytes() - done);
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
  pthread_mutex_unlock(&heap.mutex);
}

}  // namespace

void watch_forks() { pthread_atfork(prepare, parent, child); }

}  // namespace nearfield::heap
