// mlockall in a process that shares memory with its peers.
//
// Segments and heaps are sparse, each as long as the machine's memory: to lock all mapped pages would create every page
// of them. So pages of segments and heaps are locked when they are touched (MCL_ONFAULT). Everything else is locked at
// once, as the program asks, and so is the used part of its own heap. Mappings that we make later are inaccessible at
// first, so that MCL_FUTURE does not create their pages (engine/memory/segment.cpp).
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "heap/heap.h"
#include "heap/system.hpp"
#include "mpi/preload/loader.hpp"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

namespace {

using nearfield::heap::Piece;

// Calls the heap's mlockall if the heap is loaded: it keeps locked blocks shared at a fork.
int lock_all(int flags) {
  int (*next)(int);
  nearfield::heap::find_next(next, "mlockall");
  return next ? next(flags) : int(syscall(SYS_mlockall, flags));
}

// std::lock_guard would need the C++ library, which this library does not link.
class LoaderLock {
 public:
  explicit LoaderLock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~LoaderLock() { pthread_mutex_unlock(&mutex_); }
  LoaderLock(const LoaderLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int mlockall(int flags) noexcept {
  auto& pieces = nearfield::preload::loader.pieces;
  if (!(flags & MCL_CURRENT) || flags & MCL_ONFAULT) return lock_all(flags);
  const LoaderLock lock(nearfield::preload::loader.locking);
  pieces.clear();
  bool sparse = false;
  if (nearfield::heap::pieces_of(nullptr, reinterpret_cast<std::byte*>(~std::uintptr_t{0}), pieces))
    for (const Piece& piece : pieces) sparse |= piece.sparse;
  if (!sparse) return lock_all(flags);
  if (const int failed = lock_all(MCL_CURRENT | MCL_ONFAULT)) return failed;
  for (const Piece& piece : pieces)
    if (!piece.sparse && piece.protection != PROT_NONE) mlock(piece.begin, std::size_t(piece.end - piece.begin));
  int (*current)(nearfield_heap_view*);
  void* const found = dlsym(RTLD_DEFAULT, "nearfield_heap_current");
  std::memcpy(&current, &found, sizeof current);
  nearfield_heap_view view;
  if (current && current(&view) == 0) mlock(view.base, view.used);
  return flags & MCL_FUTURE ? lock_all(flags & ~MCL_CURRENT) : 0;
}
