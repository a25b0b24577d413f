// The C library's allocation functions, in front of the next allocator (the C library's own, or one that the program
// brings). Allocations of 32 KiB and more come from the shared heap, all others from the next allocator.
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
  const std::size_t at = next_functions.early_used.fetch_add((bytes + 79) / 64 * 64, std::memory_order_relaxed);
  return at + bytes <= sizeof early ? early + at : nullptr;
}

const Next* next() {
  if (next_functions.state.load(std::memory_order_acquire) == 2) [[likely]]  // SYNC: next-allocator
    return &next_functions;
  int expected = 0;
  if (!next_functions.state.compare_exchange_strong(expected, 1)) return nullptr;
  auto look_up = [](auto& function, const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    std::memcpy(&function, &found, sizeof found);
  };
  look_up(next_functions.malloc, "malloc");
  look_up(next_functions.free, "free");
  look_up(next_functions.calloc, "calloc");
  look_up(next_functions.realloc, "realloc");
  look_up(next_functions.memalign, "memalign");
  look_up(next_functions.usable, "malloc_usable_size");
  next_functions.state.store(2, std::memory_order_release);  // SYNC: next-allocator
  return &next_functions;
}

void* aligned(std::size_t alignment, std::size_t bytes) {
  if (bytes >= threshold) {
    const int before = errno;
    if (void* const block = nearfield::heap::allocate(bytes, alignment, false)) return block;
    errno = before;
  }
  const Next* const n = next();
  return n ? n->memalign(alignment, bytes) : early_malloc(bytes);
}

bool power_of_two(std::size_t value) { return value && (value & (value - 1)) == 0; }

}  // namespace

extern "C" {

EXPORT void* malloc(std::size_t bytes) {
  if (bytes >= threshold) [[unlikely]] {
    const int before = errno;
    if (void* const block = nearfield::heap::allocate(bytes, 1, false)) return block;
    errno = before;
  }
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
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (bytes >= threshold) [[unlikely]] {
    const int before = errno;
    if (void* const block = nearfield::heap::allocate(bytes, 1, true)) return block;
    errno = before;
  }
  const Next* const n = next();
  return n ? n->calloc(count, each) : early_malloc(bytes);  // early memory is static, hence zero
}

EXPORT void* realloc(void* p, std::size_t bytes) {
  if (!p) return malloc(bytes);
  const std::size_t length = nearfield::heap::length(p);
  const Next* const n = next();
  if (!length && !is_early(p) && n && (bytes < threshold || !n->usable)) return n->realloc(p, bytes);
  if (length && bytes == 0) {
    free(p);
    return nullptr;
  }
  if (length && nearfield::heap::resize(p, bytes)) return p;
  const std::size_t known = length        ? length
                            : is_early(p) ? std::size_t(early + sizeof early - static_cast<char*>(p))
                                          : n->usable(p);
  void* const moved = malloc(bytes);
  if (!moved) return nullptr;
  std::memcpy(moved, p, known < bytes ? known : bytes);
  free(p);
  return moved;
}

EXPORT void* reallocarray(void* p, std::size_t count, std::size_t each) {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(p, bytes);
}

EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  std::size_t power = 16;
  while (power < alignment) power *= 2;
  return aligned(power, bytes);
}

EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return aligned(alignment, bytes);
}

EXPORT int posix_memalign(void** where, std::size_t alignment, std::size_t bytes) {
  if (!power_of_two(alignment) || alignment % sizeof(void*)) return EINVAL;
  const int before = errno;
  void* const block = aligned(alignment, bytes);
  errno = before;
  if (!block) return ENOMEM;
  *where = block;
  return 0;
}

EXPORT void* valloc(std::size_t bytes) { return aligned(nearfield::heap::page, bytes); }

EXPORT void* pvalloc(std::size_t bytes) {
  const std::size_t page = nearfield::heap::page;
  return aligned(page, (bytes + page - 1) / page * page);
}

EXPORT std::size_t malloc_usable_size(void* p) {
  if (!p || is_early(p)) return 0;
  if (const std::size_t length = nearfield::heap::length(p)) return length;
  const Next* const n = next();
  return n && n->usable ? n->usable(p) : 0;
}
}
