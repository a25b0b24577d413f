// A fork and the heap.
//
//   before, in the parent    takes the lock and clears `shared`, so that no more blocks are described to peers. Copies
//                            for the child the ranges that peers are using now (engine/reach/in_flight_buffers.hpp
//                            lists them) and the ranges that must stay the parent's own (kept.hpp)
//                            Maps every other block again, private and copy on write, at the same place and with the
//                            access that it had
//   fork
//   parent                   retires the region and unlocks. Ranges that stayed shared become private at the next fork
//   child                    maps the copies in place of these ranges and carries out madvise marks (kept.hpp); retires
//                            the region and unlocks
//
// A fork in a signal handler may interrupt a call of this very thread that holds the lock. Then the fork does the same,
// but in parent and child the interrupted call retires the region, as its last step.
//
// Remapping goes through the C library's mmap, so that caches of registered memory, which hook it, notice.
// vfork, posix_spawn and system never come here: their children share or replace all memory anyway. _Fork does not call
// handlers of pthread_atfork, so we interpose it. A fork by a raw system call cannot be intercepted (docs/admin.md).
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "heap/file_data.hpp"
#include "heap/heap.hpp"

namespace nearfield::heap {
namespace {

void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

// Adds a range if it lies in a region; if the table is full, the last range is extended to include it.
void note(const void* begin, std::size_t bytes, void*) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const auto to = whole_pages(reinterpret_cast<std::uintptr_t>(begin) + bytes);
  const Range range = {reinterpret_cast<std::byte*>(from), reinterpret_cast<std::byte*>(to)};
  bool ours = heap.blocks.meets(range.begin, std::size_t(range.end - range.begin));
  for (const Blocks& blocks : heap.retired) ours |= blocks.meets(range.begin, std::size_t(range.end - range.begin));
  if (!ours || bytes == 0 || heap.in_flight.add(range)) return;
  if (heap.in_flight.size() == 0) {
    say("nearfield: no memory to keep parent and child apart at a fork\n");
    std::abort();
  }
  Range& last = heap.in_flight[heap.in_flight.size() - 1];
  last = {std::min(last.begin, range.begin), std::max(last.end, range.end)};
}

// Sorts the ranges and merges those that overlap.
void merge_in_flight() {
  std::sort(heap.in_flight.begin(), heap.in_flight.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::size_t count = 0;
  for (const Range& range : heap.in_flight) {
    if (count && range.begin <= heap.in_flight[count - 1].end) {
      Range& last = heap.in_flight[count - 1];
      last.end = std::max(last.end, range.end);
    } else {
      heap.in_flight[count++] = range;
    }
  }
  heap.in_flight.cut(count);
}

bool make_private(Blocks& blocks, const Range& range, int protection) {
  const int fd = blocks.file().get();
  return fd >= 0 && mmap(range.begin, std::size_t(range.end - range.begin), protection,
                         MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, range.begin - blocks.base()) != MAP_FAILED;
}

// Copies from the file if it is open, since the range need not be readable. Holes of the file take no memory there.
void copy_for_child(Blocks& blocks, const Range& range, int protection) {
  const auto bytes = std::size_t(range.end - range.begin);
  blocks.retired.shared = true;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) at = nullptr;
  const int fd = blocks.file().get();
  const off_t begin = range.begin - blocks.base(), end = begin + off_t(bytes);
  const off_t copied = !at || fd < 0 ? begin : copy_data(fd, begin, end, static_cast<std::byte*>(at));
  if (at && protection & PROT_READ)
    std::memcpy(static_cast<std::byte*>(at) + (copied - begin), range.begin + (copied - begin),
                std::size_t(end - copied));
  if (heap.copies.add({range, protection, at})) return;
  say("nearfield: no memory to keep parent and child apart at a fork\n");
  std::abort();
}

void take_apart(Blocks& blocks, const Range& range, int protection, bool used_by_peers) {
  if (range.begin >= range.end || (!used_by_peers && make_private(blocks, range, protection))) return;
  copy_for_child(blocks, range, protection);
}

// Makes the shared parts of [base, end) private; parts that peers use, or that cannot be mapped so, are copied for the
// child.
void snapshot(Blocks& blocks, std::byte* end) {
  blocks.retired.shared = false;
  heap.pieces.clear();
  if (!pieces_of(blocks.base(), end, heap.pieces, open_in_proc("/proc/self/maps"))) {
    say("nearfield: /proc/self/maps, which tells what a fork must keep apart, cannot be read\n");
    std::abort();
  }
  for (const Piece& piece : heap.pieces) {
    // private, or the program has mapped something else there
    if (!piece.shared || !blocks.file().is(piece.device, piece.inode)) continue;
    std::byte* done = piece.begin;
    for (const Range& used : heap.in_flight) {
      const Range here = {std::clamp(used.begin, done, piece.end), std::clamp(used.end, done, piece.end)};
      take_apart(blocks, {done, here.begin}, piece.protection, false);
      take_apart(blocks, here, piece.protection, true);
      done = here.end;
    }
    take_apart(blocks, {done, piece.end}, piece.protection, false);
  }
}

// Returns the block that holds this thread's stack, if one does: a copy made now would lack what the stack gets later.
Range own_stack() {
  auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
  Blocks* const blocks = owner(here);
  if (!blocks || std::size_t(here - blocks->base()) >= blocks->top_bytes()) return {};
  std::uint32_t run = 0;
  const auto found = blocks->run_at(std::size_t(here - blocks->base()), run);
  return {blocks->base() + std::size_t(run) * page, blocks->base() + found.end};
}

// Returns the end of the bytes in which blocks may lie: an interrupted call may be about to return a new one.
std::byte* end_of_current() {
  return heap.blocks.base() + (heap.interrupted ? heap.blocks.size() : heap.blocks.top_bytes());
}

void note_kept() {
  const Range stack = own_stack();
  auto note_around = [&](std::byte* begin, std::byte* end) {
    std::byte* const before = std::clamp(stack.begin, begin, end);
    std::byte* const behind = std::clamp(stack.end, begin, end);
    note(begin, std::size_t(before - begin), nullptr);
    note(behind, std::size_t(end - behind), nullptr);
  };
  if (!keeps_all()) {
    for (const KeptRange& range : heap.kept) note_around(range.begin, range.end);
    return;
  }
  if (heap.blocks.exists()) note_around(heap.blocks.base(), end_of_current());
  for (Blocks& blocks : heap.retired) note_around(blocks.base(), blocks.base() + blocks.top_bytes());
}

void prepare() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  heap.interrupted = heap.mutex.mine();
  if (!heap.interrupted) heap.mutex.lock();
  // An interrupted call may be about to return the first block.
  heap.retiring = heap.interrupted ? heap.blocks.exists() && heap.retire == Heap::no : heap.blocks.used_bytes() != 0;
  heap.signals_before = before;
  heap.copies.clear();
  heap.in_flight.clear();
  bool left = false;
  for (std::size_t i = 0; i < heap.retired.size(); ++i) left |= heap.retired[i].retired.shared;
  if (heap.retiring) heap.shared.store(false, std::memory_order_relaxed);
  // SYNC: noted; a buffer that visit() misses is noted later, and then `shared` is false
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((heap.retiring || left) && heap.visit) heap.visit(note, nullptr);
  if (heap.retiring || left) note_kept();
  merge_in_flight();
  // Ranges that earlier forks left shared become private once peers no longer use them.
  for (std::size_t i = 0; i < heap.retired.size(); ++i)
    if (heap.retired[i].retired.shared) snapshot(heap.retired[i], heap.retired[i].base() + heap.retired[i].top_bytes());
  if (heap.retiring) {
    ++heap.forks;
    snapshot(heap.blocks, end_of_current());
  }
  if (heap.retiring || heap.retired.size()) expect_child();
}

void finish(bool in_child) {
  const sigset_t before = heap.signals_before;
  if (heap.interrupted) {
    if (heap.retiring) heap.retire = Heap::yes;
    if (in_child && heap.retire != Heap::no) heap.retire = Heap::in_child;
  } else {
    if (heap.retiring) retire(in_child);
    heap.mutex.unlock();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void parent() {
  for (const Copy& copy : heap.copies)
    if (copy.contents) munmap(copy.contents, std::size_t(copy.range.end - copy.range.begin));
  child_is_born();
  finish(false);
}

void child() {
  heap.mutex.inherit();
  for (const Copy& copy : heap.copies) {
    const auto bytes = std::size_t(copy.range.end - copy.range.begin);
    if (!copy.contents ||
        mremap(copy.contents, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, copy.range.begin) == MAP_FAILED) {
      say("nearfield: no memory for a forked child's copy of what its parent is exchanging\n");
      _exit(127);
    }
    if (copy.protection != (PROT_READ | PROT_WRITE)) protect(copy.range.begin, bytes, copy.protection);
  }
  inherit_kept();
  heap.visit = nullptr;
  forget_children();
  if (!heap.retiring && !heap.interrupted && heap.blocks.exists()) heap.blocks.unmap();  // it stays the parent's
  finish(true);
}

}  // namespace

void retire(bool in_child) {
  heap.retire = Heap::no;
  if (!heap.blocks.exists()) return;
  heap.blocks.unmap_beyond_top();
  heap.blocks.retired.since = heap.forks;
  heap.blocks.retired.inherited = in_child;
  if (in_child) heap.blocks.file().close(), heap.blocks.retired.shared = false;
  else heap.unsettled.store(true, std::memory_order_relaxed);
  heap.retired.add(heap.blocks);  // begin_region() has seen to the room
  heap.blocks.forget();
}

// Runs at load, before other libraries register their handlers. So our handler takes the lock after their handlers
// before the fork, and frees it before their handlers after the fork: all of them may allocate.
[[gnu::constructor]] static void watch_forks() {
  pthread_atfork(prepare, parent, child);
  find_next(heap.next_fork, "_Fork");
}

}  // namespace nearfield::heap

extern "C" {

// Programs call _Fork by name; the C library's own fork() never calls this function.
__attribute__((visibility("default"))) pid_t _Fork() __THROW {
  pid_t (*const next)() = nearfield::heap::heap.next_fork;
  if (!next) return errno = ENOSYS, -1;
  nearfield::heap::prepare();
  const pid_t pid = next();
  const int before = errno;
  pid == 0 ? nearfield::heap::child() : nearfield::heap::parent();
  errno = before;
  return pid;
}
}
