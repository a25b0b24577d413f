// The C library's allocation functions, in front of the next allocator (the C library's own, or one that the program
// brings). Allocations of 32 KiB and more come from the shared heap; for all others, and for arguments that no
// allocator can serve, the next allocator's own function answers, so that results and errno are as without us.
#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heap/heap.hpp"

#define EXPORT __attribute__((visibility("default")))

namespace {

using nearfield::heap::threshold;

using Next = nearfield::heap::NextAllocator;
constexpr Next& next_functions = nearfield::heap::heap.next_allocator;
constexpr auto& early = next_functions.early;

bool is_early(const void* p) { return p >= early && p < early + sizeof early; }

void* early_malloc(std::size_t bytes) {
  if (bytes <= sizeof early) {
    const std::size_t at = next_functions.early_used.fetch_add((bytes + 79) / 64 * 64, std::memory_order_relaxed);
    if (at + bytes <= sizeof early) return early + at;
  }
  errno = ENOMEM;
  return nullptr;
}

const Next* next() {
  if (next_functions.state.load(std::memory_order_acquire) == 2) [[likely]]  // SYNC: next-allocator
    return &next_functions;
  int expected = 0;
  if (!next_functions.state.compare_exchange_strong(expected, 1)) return nullptr;
  using nearfield::heap::find_next;
  find_next(next_functions.malloc, "malloc");
  find_next(next_functions.free, "free");
  find_next(next_functions.calloc, "calloc");
  find_next(next_functions.realloc, "realloc");
  find_next(next_functions.memalign, "memalign");
  find_next(next_functions.aligned_alloc, "aligned_alloc");
  find_next(next_functions.posix_memalign, "posix_memalign");
  find_next(next_functions.valloc, "valloc");
  find_next(next_functions.pvalloc, "pvalloc");
  find_next(next_functions.usable, "malloc_usable_size");
  next_functions.state.store(2, std::memory_order_release);  // SYNC: next-allocator
  return &next_functions;
}

// A block of the heap; nullptr: the next allocator has to answer.
void* block(std::size_t alignment, std::size_t bytes, bool zero = false) {
  if (bytes < threshold || (alignment & (alignment - 1)) || !alignment) return nullptr;
  const int before = errno;
  void* const found = nearfield::heap::allocate(bytes, alignment, zero);
  errno = before;
  return found;
}

}  // namespace

extern "C" {

EXPORT void* malloc(std::size_t bytes) {
  if (bytes >= threshold) [[unlikely]]
    if (void* const found = block(1, bytes)) return found;
  const Next* const n = next();
  return n ? n->malloc(bytes) : early_malloc(bytes);
}

EXPORT void free(void* p) {
  if (!p) return;
  const int before = errno;
  if (!nearfield::heap::free(p) && !is_early(p))
    if (const Next* const n = next()) n->free(p);
  errno = before;
}

EXPORT void* calloc(std::size_t count, std::size_t each) {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) bytes = SIZE_MAX;  // which nobody has
  if (bytes >= threshold) [[unlikely]]
    if (void* const found = block(1, bytes, true)) return found;
  const Next* const n = next();
  return n ? n->calloc(count, each) : early_malloc(bytes);  // early memory is static, hence zero
}

EXPORT void* realloc(void* p, std::size_t bytes) {
  if (!p) return malloc(bytes);
  const std::size_t length = nearfield::heap::length(p);
  const Next* const n = next();
  const bool theirs = !length && !is_early(p) && n;
  if (theirs && (bytes < threshold || !n->usable)) return n->realloc(p, bytes);
  if (length && bytes == 0) {
    free(p);
    return nullptr;
  }
  if (length && nearfield::heap::resize(p, bytes)) return p;
  const std::size_t known = length        ? length
                            : is_early(p) ? std::size_t(early + sizeof early - static_cast<char*>(p))
                                          : n->usable(p);
  void* const moved = theirs ? block(1, bytes) : malloc(bytes);
  if (!moved) return theirs ? n->realloc(p, bytes) : nullptr;
  std::memcpy(moved, p, known < bytes ? known : bytes);
  free(p);
  return moved;
}

EXPORT void* reallocarray(void* p, std::size_t count, std::size_t each) {
  std::size_t bytes;
  if (!__builtin_mul_overflow(count, each, &bytes)) return realloc(p, bytes);
  errno = ENOMEM;
  return nullptr;
}

EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  if (void* const found = block(alignment, bytes)) return found;
  const Next* const n = next();
  return n ? n->memalign(alignment, bytes) : early_malloc(bytes);
}

EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (void* const found = block(alignment, bytes)) return found;
  const Next* const n = next();
  return n ? n->aligned_alloc(alignment, bytes) : early_malloc(bytes);
}

EXPORT int posix_memalign(void** where, std::size_t alignment, std::size_t bytes) {
  void* found = alignment % sizeof(void*) ? nullptr : block(alignment, bytes);
  if (const Next* const n = found ? nullptr : next()) return n->posix_memalign(where, alignment, bytes);
  if (!found) found = early_malloc(bytes);
  if (!found) return ENOMEM;
  *where = found;
  return 0;
}

EXPORT void* valloc(std::size_t bytes) {
  if (void* const found = block(nearfield::heap::page, bytes)) return found;
  const Next* const n = next();
  return n ? n->valloc(bytes) : early_malloc(bytes);
}

EXPORT void* pvalloc(std::size_t bytes) {
  if (void* const found = block(nearfield::heap::page, bytes)) return found;  // of whole pages anyway
  const Next* const n = next();
  return n ? n->pvalloc(bytes) : early_malloc(bytes);
}

// C23; where the C library has them, its own would not know our blocks.
EXPORT void free_sized(void* p, std::size_t) { free(p); }
EXPORT void free_aligned_sized(void* p, std::size_t, std::size_t) { free(p); }

EXPORT std::size_t malloc_usable_size(void* p) {
  if (!p || is_early(p)) return 0;
  if (const std::size_t length = nearfield::heap::length(p)) return length;
  const Next* const n = next();
  return n && n->usable ? n->usable(p) : 0;
}
}
