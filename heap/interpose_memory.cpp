// Functions of the C library that act differently on shared memory than on private memory: the program expects that its
// blocks are private. Also functions by which the program learns that a child has ended (giving_back.cpp).
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "heap/heap.hpp"

#define EXPORT __attribute__((visibility("default")))

namespace {

using nearfield::heap::Blocks;
using nearfield::heap::heap;
using nearfield::heap::Lock;
using nearfield::heap::NoSignals;
using nearfield::heap::page;
using nearfield::heap::Piece;

// Calls visit(blocks, begin, end) for each part of [begin, end) in a region of ours and pass(begin, end) for the rest,
// in order, until one of them fails.
template <class Visit, class Pass>
int each_part(std::byte* begin, std::byte* end, Visit visit, Pass pass) {
  while (begin < end) {
    Blocks* const blocks = nearfield::heap::owner(begin);
    std::byte* stop = end;
    if (blocks) {
      stop = std::min(end, blocks->base() + blocks->size());
    } else {
      auto limit = [&](Blocks& other) {
        if (other.exists() && other.base() > begin) stop = std::min(stop, other.base());
      };
      limit(heap.blocks);
      for (std::size_t i = 0; i < heap.retired.size(); ++i) limit(heap.retired[i]);
    }
    if (const int failed = blocks ? visit(*blocks, begin, stop) : pass(begin, stop)) return failed;
    begin = stop;
  }
  return 0;
}

// Makes the range read as zero and keeps its access. In a retired region other memory replaces it, since the file would
// show its old contents. Parts that the program has mapped itself get the kernel's madvise.
int discard(Blocks& blocks, std::byte* begin, std::byte* end, int advice) {
  const bool shared = &blocks == &heap.blocks && heap.shared.load(std::memory_order_relaxed);
  const auto punch = [&](std::byte* from, std::byte* to) {
    if (advice == MADV_REMOVE) return errno = EINVAL, -1;  // as the kernel answers for private memory
    return blocks.punch(std::size_t(from - blocks.base()), std::size_t(to - from)) ? 0 : -1;
  };
  if (shared && !blocks.is_foreign(std::size_t(begin - blocks.base()), std::size_t(end - blocks.base())))
    return punch(begin, end);
  heap.pieces.clear();
  if (!nearfield::heap::pieces_of(begin, end, heap.pieces)) return -1;
  std::size_t unmapped = std::size_t(end - begin);
  for (const Piece& piece : heap.pieces) {
    const auto bytes = std::size_t(piece.end - piece.begin);
    unmapped -= bytes;
    const bool file = blocks.file().is(piece.device, piece.inode);
    if (!file && nearfield::heap::advise(piece.begin, bytes, advice)) return -1;
    if (file && shared && punch(piece.begin, piece.end)) return -1;
    if (file && !shared && advice == MADV_REMOVE) return errno = EINVAL, -1;
    if (file && !shared &&
        mmap(piece.begin, bytes, piece.protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return -1;
  }
  if (unmapped) errno = ENOMEM;
  return unmapped ? -1 : 0;
}

// ---------------------------------------------------------------- children that end

constexpr nearfield::heap::NextWaits& next_functions = heap.next_waits;

// Runs at load, since programs may call these functions in signal handlers, where dlsym is not allowed.
[[gnu::constructor]] void look_up() {
  using nearfield::heap::find_next;
  find_next(next_functions.wait4, "wait4");
  find_next(next_functions.waitpid, "waitpid");
  find_next(next_functions.waitid, "waitid");
}

constexpr std::size_t copied_at_an_end = 32 << 20;  // bytes; limited, since the program may never write them again

template <class Result>
Result after_wait(Result result) {
  if (result < 0 || !heap.unsettled.load(std::memory_order_relaxed)) return result;
  const int before = errno;
  if (heap.mutex.try_lock()) {  // this may be a signal handler that has interrupted the holder
    nearfield::heap::give_back_retired(copied_at_an_end, true);
    Lock::release();
  }
  errno = before;
  return result;
}

}  // namespace

extern "C" {

EXPORT int madvise(void* address, std::size_t bytes, int advice) __THROW {
  using nearfield::heap::advise;
  constexpr int dontneed_locked = 24;
  const int marked = nearfield::heap::mark(address, bytes, advice);
  if (marked <= 0) return marked;
  const bool discards =
      advice == MADV_DONTNEED || advice == MADV_FREE || advice == dontneed_locked || advice == MADV_REMOVE;
  auto* const begin = static_cast<std::byte*>(address);
  if (!discards || !heap.any.load(std::memory_order_relaxed) || reinterpret_cast<std::uintptr_t>(address) % page ||
      bytes > PTRDIFF_MAX)
    return advise(address, bytes, advice);
  const Lock lock;
  if (!lock.held()) return advise(address, bytes, advice);
  const NoSignals none;  // a fork in a handler would use heap.pieces
  return each_part(
      begin, begin + nearfield::heap::whole_pages(bytes),
      [&](Blocks& blocks, std::byte* from, std::byte* to) { return discard(blocks, from, to, advice); },
      [&](std::byte* from, std::byte* to) { return advise(from, std::size_t(to - from), advice); });
}

EXPORT int mprotect(void* address, std::size_t bytes, int protection) __THROW {
  const int result = nearfield::heap::protect(address, bytes, protection);
  if (result || !heap.any.load(std::memory_order_relaxed) || bytes > PTRDIFF_MAX) return result;
  const Lock lock;
  auto* const begin = static_cast<std::byte*>(address);
  if (lock.held() && heap.blocks.meets(begin, bytes))
    heap.blocks.alter(std::max(begin, heap.blocks.base()), begin + nearfield::heap::whole_pages(bytes));
  return 0;
}

// Under other C++ names, since the header declares these as not throwing: cancelling a thread would end the program.
EXPORT pid_t cancellable_wait4(pid_t, int*, int, rusage*) __asm__("wait4");
EXPORT pid_t cancellable_wait3(int*, int, rusage*) __asm__("wait3");

pid_t cancellable_wait4(pid_t pid, int* status, int options, rusage* usage) {
  return after_wait(next_functions.wait4 ? next_functions.wait4(pid, status, options, usage)
                                         : pid_t(syscall(SYS_wait4, pid, status, options, usage)));
}

pid_t cancellable_wait3(int* status, int options, rusage* usage) {
  return cancellable_wait4(-1, status, options, usage);
}

EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  return after_wait(next_functions.waitpid ? next_functions.waitpid(pid, status, options)
                                           : pid_t(syscall(SYS_wait4, pid, status, options, nullptr)));
}

EXPORT pid_t wait(int* status) { return waitpid(-1, status, 0); }

EXPORT int waitid(idtype_t type, id_t id, siginfo_t* information, int options) {
  return after_wait(next_functions.waitid ? next_functions.waitid(type, id, information, options)
                                          : int(syscall(SYS_waitid, type, id, information, options, nullptr)));
}
}
