// mlockall in a process that shares memory with its peers.
//
// Segments and heaps are sparse, each as long as the machine's memory: locking all that is mapped would fill them with
// pages from end to end. So here they are locked as they are touched, everything else at once as the program asks, and
// of its own heap what it has allocated. Later mappings of ours get their access after they are made, which keeps
// MCL_FUTURE from filling them (engine/memory/segment.cpp).
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

// The heap's, where it is loaded, which keeps what is locked over forks.
int lock_all(int flags) {
  int (*next)(int);
  nearfield::heap::find_next(next, "mlockall");
  return next ? next(flags) : int(syscall(SYS_mlockall, flags));
}

// Of the C library, which is all that this library needs.
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
