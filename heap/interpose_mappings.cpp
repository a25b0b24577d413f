// Functions by which a program puts something else where a block of it lies: from then on these pages are the program's
// (foreign.cpp).
//
// They are called before constructors and in signal handlers, and by the heap itself. A call by the thread that holds
// the heap's lock is only passed on. The next function is called, not the kernel: caches of registered memory hook it.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "heap/heap.hpp"

#define EXPORT __attribute__((visibility("default")))

namespace {

using nearfield::heap::Blocks;
using nearfield::heap::heap;
using nearfield::heap::Lock;
using nearfield::heap::page;
using nearfield::heap::Piece;

constexpr nearfield::heap::NextMappings& next = heap.next_mappings;

[[gnu::constructor]] void look_up() {
  using nearfield::heap::find_next;
  find_next(next.mmap, "mmap");
  find_next(next.munmap, "munmap");
  find_next(next.mremap, "mremap");
  find_next(next.shmat, "shmat");
}

void* next_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (next.mmap) [[likely]]
    return next.mmap(at, bytes, protection, flags, fd, offset);
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

int next_munmap(void* at, std::size_t bytes) {
  return next.munmap ? next.munmap(at, bytes) : int(syscall(SYS_munmap, at, bytes));
}

void* next_mremap(void* old, std::size_t before, std::size_t bytes, int flags, void* at) {
  if (next.mremap) return next.mremap(old, before, bytes, flags, at);
  return reinterpret_cast<void*>(syscall(SYS_mremap, old, before, bytes, flags, at));
}

// Asked without the lock, so that calls which concern no block do not take it.
bool may_meet(const void* at, std::size_t bytes) {
  return heap.any.load(std::memory_order_relaxed) && reinterpret_cast<std::uintptr_t>(at) % page == 0 &&
         bytes <= PTRDIFF_MAX && (heap.any_kept.load(std::memory_order_relaxed) || heap.blocks.meets(at, bytes));
}

// pre: the lock is held.
void leave(const void* at, std::size_t bytes) {
  Blocks& blocks = heap.blocks;
  auto* const begin = static_cast<const std::byte*>(at);
  nearfield::heap::forget_marks(begin, begin + nearfield::heap::whole_pages(bytes));  // of regions before this one, too
  if (!blocks.meets(at, bytes)) return;
  heap.foreign.store(true, std::memory_order_relaxed);
  blocks.leave(std::size_t(std::max<const std::byte*>(begin, blocks.base()) - blocks.base()),
               std::size_t(std::min<const std::byte*>(begin + nearfield::heap::whole_pages(bytes),
                                                      blocks.base() + blocks.size()) -
                           blocks.base()));
}

void* fail(int error) {
  errno = error;
  return MAP_FAILED;
}

// mremap of pages of a region: as private memory of malloc's would, the contents move, and not the file's pages, which
// the next block gets.
void* move(Blocks& blocks, const Piece& piece, std::byte* old, std::size_t before, std::size_t bytes, int flags,
           void* at) {
  const bool fixed = flags & MREMAP_FIXED, stays = flags & MREMAP_DONTUNMAP;
  before = nearfield::heap::whole_pages(before);
  bytes = nearfield::heap::whole_pages(bytes);
  if (before == 0 || bytes == 0 || ((fixed || stays) && !(flags & MREMAP_MAYMOVE))) return fail(EINVAL);
  if (piece.begin != old || piece.end < old + before) return fail(EFAULT);
  if (!fixed && !stays && bytes == before) return old;
  if (!fixed && !stays && bytes < before) {
    next_munmap(old + bytes, before - bytes);
    leave(old + bytes, before - bytes);
    return old;
  }
  if (!(flags & MREMAP_MAYMOVE)) return fail(ENOMEM);  // another block may follow
  if (fixed) {
    auto* const begin = static_cast<std::byte*>(at);
    if (reinterpret_cast<std::uintptr_t>(at) % page || (begin < old + before && old < begin + bytes))
      return fail(EINVAL);
    leave(at, bytes);
  }
  void* const to = next_mmap(fixed ? at : nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
  if (to == MAP_FAILED) return MAP_FAILED;
  if (!(piece.protection & PROT_READ)) nearfield::heap::protect(old, before, PROT_READ);
  std::memcpy(to, old, std::min(before, bytes));
  if (piece.protection != (PROT_READ | PROT_WRITE)) nearfield::heap::protect(to, bytes, piece.protection);
  if (&blocks == &heap.blocks) blocks.punch(std::size_t(old - blocks.base()), before);
  if (stays) {
    next_mmap(old, before, piece.protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  } else {
    next_munmap(old, before);
  }
  leave(old, before);
  return to;
}

}  // namespace

extern "C" {

EXPORT void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) __THROW {
  if (!(flags & MAP_FIXED) || !may_meet(at, bytes)) [[likely]]
    return next_mmap(at, bytes, protection, flags, fd, offset);
  const Lock lock;
  if (lock.held()) leave(at, bytes);
  return next_mmap(at, bytes, protection, flags, fd, offset);
}

EXPORT void* mmap64(void* at, std::size_t bytes, int protection, int flags, int fd, off64_t offset) __THROW {
  return mmap(at, bytes, protection, flags, fd, offset);
}

EXPORT int munmap(void* at, std::size_t bytes) __THROW {
  if (!may_meet(at, bytes)) [[likely]]
    return next_munmap(at, bytes);
  const Lock lock;
  if (lock.held()) leave(at, bytes);
  return next_munmap(at, bytes);
}

EXPORT void* mremap(void* old, std::size_t before, std::size_t bytes, int flags, ...) __THROW {
  va_list more;
  va_start(more, flags);
  void* const at = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(more, void*) : nullptr;
  va_end(more);
  if (!heap.any.load(std::memory_order_relaxed) || before > PTRDIFF_MAX || bytes > PTRDIFF_MAX)
    return next_mremap(old, before, bytes, flags, at);
  const Lock lock;
  if (!lock.held()) return next_mremap(old, before, bytes, flags, at);
  const nearfield::heap::NoSignals none;  // a fork in a handler would use heap.pieces
  Blocks* const blocks = nearfield::heap::owner(old);
  auto* const begin = static_cast<std::byte*>(old);
  if (blocks && reinterpret_cast<std::uintptr_t>(old) % page == 0) {
    heap.pieces.clear();
    if (pieces_of(begin, begin + nearfield::heap::whole_pages(std::max<std::size_t>(before, 1)), heap.pieces) &&
        heap.pieces.size() > 0) {
      const Piece piece = heap.pieces[0];
      if (blocks->file().is(piece.device, piece.inode)) return move(*blocks, piece, begin, before, bytes, flags, at);
    }
  }
  if (flags & MREMAP_FIXED) leave(at, bytes);
  void* const moved = next_mremap(old, before, bytes, flags, at);
  if (moved != MAP_FAILED && moved != old) leave(old, before);
  return moved;
}

EXPORT void* shmat(int id, const void* at, int flags) __THROW {
  auto attach = [&] {
    return next.shmat ? next.shmat(id, at, flags) : reinterpret_cast<void*>(syscall(SYS_shmat, id, at, flags));
  };
  shmid_ds about;
  if (!(flags & SHM_REMAP) || !at || !heap.any.load(std::memory_order_relaxed) || shmctl(id, IPC_STAT, &about) != 0)
    return attach();
  const Lock lock;
  if (lock.held()) leave(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(at) / page * page), about.shm_segsz);
  return attach();
}
}
