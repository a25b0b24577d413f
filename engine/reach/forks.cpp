#include "engine/reach/forks.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "engine/base/globals.hpp"
#include "engine/base/made.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/file_data.hpp"
#include "engine/reach/peers.hpp"
#include "engine/reach/shared_heap.hpp"

namespace nearfield::reach {
namespace {

constexpr std::size_t page = 4096;

struct Offsets {
  std::size_t begin, end;  // offsets
};
struct Copy {
  Offsets range;
  void* contents;
};

}  // namespace

// `arena`: its thread holds the arena's lock; nullptr: this fork is ignored.
struct ForkUnderWay {
  memory::Arena* arena = nullptr;
  std::vector<Offsets> used;  // ranges that peers use, in order
  std::vector<Copy> copies;
};

namespace {

ForkUnderWay& fork_under_way() { return made(globals().fork); }

void note(const memory::Segment& segment, const void* address, std::size_t bytes) {
  if (!segment.contains(address, 1)) return;
  const auto begin = std::size_t(static_cast<const std::byte*>(address) - segment.base());
  fork_under_way().used.push_back({begin / page * page, (begin + bytes + page - 1) / page * page});
}

void copy_for_child(const memory::Segment& segment, const Offsets& range) {
  const std::size_t bytes = range.end - range.begin;
  fork_under_way().copies.reserve(fork_under_way().copies.size() + 1);
  void* const contents =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (contents == MAP_FAILED) return;
  const auto end = off_t(range.end);
  if (memory::copy_data(segment.fd(), off_t(range.begin), end, static_cast<std::byte*>(contents)) == end)
    fork_under_way().copies.push_back({range, contents});
  else munmap(contents, bytes);
}

void take_apart(memory::Segment& segment, const Offsets& range) {
  if (range.begin >= range.end) return;
  segment.apart().add(range.begin, range.end);
  if (mmap(segment.base() + range.begin, range.end - range.begin, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, segment.fd(), off_t(range.begin)) != MAP_FAILED)
    return;
  segment.apart().drop(range.begin);
  copy_for_child(segment, range);
}

// Treats the parts of the block that are still shared.
void separate(memory::Segment& segment, Offsets block) {
  const auto& apart = segment.apart().ranges();
  std::vector<Offsets> shared;
  std::size_t done = block.begin;
  for (auto it = apart.lower_bound(block.begin); it != apart.end() && it->first < block.end; ++it) {
    shared.push_back({done, it->first});
    done = it->second;
  }
  shared.push_back({done, block.end});
  for (const Offsets& piece : shared) {
    done = piece.begin;
    for (const Offsets& used : fork_under_way().used) {
      const Offsets here = {std::clamp(used.begin, done, piece.end), std::clamp(used.end, done, piece.end)};
      take_apart(segment, {done, here.begin});
      if (here.begin < here.end) copy_for_child(segment, here);
      done = here.end;
    }
    take_apart(segment, {done, piece.end});
  }
}

void prepare() {
  memory::Arena* const arena = globals().forking_arena.load(std::memory_order_acquire);  // SYNC: watched-arena
  const Peers* const peers = globals().forking_peers.load(std::memory_order_acquire);    // SYNC: watched-peers
  ForkUnderWay& now = fork_under_way();
  now.arena = nullptr;
  if (!arena || !peers || !arena->begin_fork()) return;
  now.arena = arena;
  memory::Segment& segment = peers->segment();
  if (!arena->held(memory::Arena::locked, memory::Component::alloc_mem) || !segment.apart().begin_fork()) return;
  try {
    now.used.clear();
    now.copies.clear();
    peers->in_flight_buffers.visit([&](const void* address, std::size_t bytes) { note(segment, address, bytes); });
    const SharedHeap* const heap = SharedHeap::find();
    if (heap && heap->kept([](const void* begin, std::size_t bytes,
                              void* segment) { note(*static_cast<memory::Segment*>(segment), begin, bytes); },
                           &segment))
      note(segment, segment.base(), segment.size());
    std::ranges::sort(now.used, {}, &Offsets::begin);
    arena->visit_untouched(memory::Component::alloc_mem,
                           [&](std::size_t offset, std::size_t bytes) { separate(segment, {offset, offset + bytes}); });
  } catch (const std::bad_alloc&) {
  }
  segment.apart().end_fork();
}

void parent() {
  ForkUnderWay& now = fork_under_way();
  if (!now.arena) return;
  for (const Copy& copy : now.copies) munmap(copy.contents, copy.range.end - copy.range.begin);
  now.copies.clear();
  now.arena->end_fork();
}

void child() {
  ForkUnderWay& now = fork_under_way();
  if (!now.arena) return;
  std::byte* const base = globals().forking_peers.load(std::memory_order_relaxed)->segment().base();
  for (const Copy& copy : now.copies) {
    const std::size_t bytes = copy.range.end - copy.range.begin;
    mremap(copy.contents, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base + copy.range.begin);
  }
  now.arena->inherit();
  now.arena->end_fork();
}

}  // namespace

void watch_forks(memory::Arena& arena, Peers& peers) {
  fork_under_way();                                                  // made here, where memory may be lacking
  globals().forking_peers.store(&peers, std::memory_order_release);  // SYNC: watched-peers
  globals().forking_arena.store(&arena, std::memory_order_release);  // SYNC: watched-arena
  static const bool watches = [] {
    const SharedHeap* const heap = SharedHeap::find();
    if (heap) heap->beside(prepare, parent, child);
    return heap || pthread_atfork(prepare, parent, child) == 0;
  }();
  static_cast<void>(watches);
}

void forget_forks(const Peers& peers) {
  if (globals().forking_peers.load(std::memory_order_relaxed) != &peers) return;
  globals().forking_arena.store(nullptr, std::memory_order_release);  // SYNC: watched-arena
  globals().forking_peers.store(nullptr, std::memory_order_release);  // SYNC: watched-peers
}

}  // namespace nearfield::reach
