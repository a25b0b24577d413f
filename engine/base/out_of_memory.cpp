// Operators new that throw OutOfMemory, for every library that links the engine. Sanitizers have operators of their
// own, which end the process.
#include "engine/base/out_of_memory.hpp"

#include <cstdlib>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

void* allocate(std::size_t bytes) {
  if (void* const p = std::malloc(bytes ? bytes : 1)) [[likely]]
    return p;
  throw nearfield::OutOfMemory();
}

void* allocate(std::size_t bytes, std::align_val_t alignment) {
  void* p = nullptr;
  if (posix_memalign(&p, std::size_t(alignment), bytes ? bytes : 1)) throw nearfield::OutOfMemory();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t /*bytes*/) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t /*bytes*/) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t /*alignment*/) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t /*alignment*/) noexcept { std::free(p); }
void operator delete(void* p, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept { std::free(p); }

#endif
