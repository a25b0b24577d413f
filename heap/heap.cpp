#include "heap/heap.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/early_settings.hpp"
#include "engine/processor/instrumented.hpp"
#include "heap/heap.h"
#include "heap/limits.hpp"

// gnu_get_libc_version is absent in musl, whose allocator we do not support. The others are present under sanitizers,
// whose allocators must see every block. So must Valgrind's allocator, which also visits all reserved memory.
extern "C" [[gnu::weak]] const char* gnu_get_libc_version();
extern "C" [[gnu::weak]] void __asan_init();
extern "C" [[gnu::weak]] void __tsan_init();
extern "C" [[gnu::weak]] void __msan_init();
extern "C" [[gnu::weak]] void __lsan_init();
extern "C" [[gnu::weak]] void __hwasan_init();

namespace nearfield::heap {

constinit Heap heap = {};

namespace {

bool serves_this_process() {
  return gnu_get_libc_version && !__asan_init && !__tsan_init && !__msan_init && !__lsan_init && !__hwasan_init &&
         !processor::is_instrumented();
}

constexpr std::size_t copied_on_the_way = 4 << 20;  // bytes, in one call that allocates or frees

// Wrong values are ignored; the engine reports them.
void read_settings() {
  heap.asked = true;
  heap.collapsing.begin(nanoseconds());
  const char* const text = std::getenv(early::heap.variable);
  heap.off = (text && *text ? !std::strcmp(text, "off") : early::is_off("NEARFIELD")) || !serves_this_process();
  const std::size_t memory = std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
  // Every rank maps every other's heap: those of two ranks for each CPU must fit into a quarter of the address space.
  const std::size_t ranks = std::max<std::size_t>(64, 2 * std::size_t(sysconf(_SC_NPROCESSORS_ONLN)));
  heap.region_bytes = std::min(memory, (std::size_t{32} << 40) / ranks);
  heap.keep = std::min<std::size_t>(256u << 20, memory / 16);
  if (const char* const keep = std::getenv(early::heap_keep.variable)) early::read_bytes(keep, heap.keep);
  // A fork reads /proc/self/maps.
  heap.off |= address_space_is_scarce() || access("/proc/self/maps", R_OK) != 0;
}

// Makes room for one more retired region now, since a fork in a signal handler would find a growing table half moved.
bool room_to_retire() {
  const NoSignals none;
  if (!heap.retired.add({})) return false;
  heap.retired.cut(heap.retired.size() - 1);
  return true;
}

// Regions that are given back leave their place to others, so age is told by the generation.
void close_oldest() {
  Blocks* oldest = nullptr;
  std::size_t open = 0;
  for (Blocks& blocks : heap.retired) {
    if (blocks.file().get() < 0) continue;
    ++open;
    if (!oldest || blocks.generation() < oldest->generation()) oldest = &blocks;
  }
  if (open > most_open) oldest->file().close();
}

bool begin_region() {
  if (!heap.asked) read_settings();
  if (heap.off || heap.limited.load(std::memory_order_relaxed)) return false;
  if (!room_to_retire() || !heap.blocks.create(heap.region_bytes, heap.generation + 1)) {
    heap.off = true;
    return false;
  }
  close_oldest();
  if (heap.spare.get() < 0) heap.spare = heap.blocks.file().duplicate();
  ++heap.generation;
  if (heap.placed) heap.blocks.place(heap.placement);
  heap.any.store(true, std::memory_order_relaxed);
  heap.foreign.store(false, std::memory_order_relaxed);
  heap.shared.store(true, std::memory_order_release);  // SYNC: heap-shared
  return true;
}

}  // namespace

int open_in_proc(const char* path) {
  const int fd = descriptors::open_to_read(path);
  if (fd >= 0 || errno != EMFILE || heap.spare.get() < 0) return fd;
  heap.spare.close();
  return descriptors::open_to_read(path);  // the next region makes another spare descriptor
}

Blocks* owner(const void* p) {
  if (heap.blocks.contains(p)) return &heap.blocks;
  for (std::size_t i = 0; i < heap.retired.size(); ++i)
    if (heap.retired[i].contains(p)) return &heap.retired[i];
  return nullptr;
}

void Lock::release() {
  if (heap.retire != Heap::no) [[unlikely]] {
    const NoSignals none;
    retire(heap.retire == Heap::in_child);
    heap.mutex.unlock();
  } else {
    heap.mutex.unlock();  // a fork in between sets `retire` for the next call that unlocks
  }
}

void* allocate(std::size_t bytes, std::size_t alignment, bool zero) {
  if (bytes < threshold || bytes > PTRDIFF_MAX || heap.pauses.load(std::memory_order_relaxed)) return nullptr;
  bool is_zero = false;
  void* block;
  {
    const Lock lock;
    if (!lock.held() || (!heap.blocks.exists() && (heap.off || !begin_region()))) return nullptr;
    block = heap.blocks.allocate(bytes, alignment, is_zero);
    give_back_retired(copied_on_the_way, false);
  }
  if (block && zero && !is_zero) std::memset(block, 0, bytes);
  return block;
}

std::size_t length(const void* p) {
  if (!heap.any.load(std::memory_order_relaxed)) return 0;
  const Lock lock;
  const Blocks* const blocks = owner(p);
  return blocks ? blocks->length(p) : 0;
}

bool free(void* p) {
  if (!heap.any.load(std::memory_order_relaxed)) return false;
  // Filters without the lock: blocks are page-aligned; those of the next allocator seldom are.
  if (reinterpret_cast<std::uintptr_t>(p) % page) return false;
  const Lock lock;
  Blocks* const blocks = owner(p);
  if (!blocks || !blocks->length(p)) return false;
  if (!lock.held()) return true;  // the block is lost, since the interrupted call holds the lock
  if (heap.kept.size()) [[unlikely]]
    release_kept(static_cast<std::byte*>(p), blocks->length(p));
  if (blocks == &heap.blocks) {
    blocks->free(p, heap.keep);
    heap.foreign.store(blocks->has_foreign(), std::memory_order_relaxed);
    give_back_retired(copied_on_the_way, false);
    return true;
  }
  const NoSignals none;
  const std::size_t bytes = blocks->length(p);
  blocks->drop(p);
  if (bytes >= extent / 2) give_back_freed(*blocks, std::size_t(static_cast<std::byte*>(p) - blocks->base()), bytes);
  give_back_retired(copied_on_the_way, false);
  if (blocks->used_bytes() == 0) {
    give_back_freed(*blocks, 0, blocks->top_bytes());  // peers may still map it
    blocks->unmap();
    *blocks = heap.retired[heap.retired.size() - 1];
    heap.retired.cut(heap.retired.size() - 1);
  }
  return true;
}

bool resize(void* p, std::size_t bytes) {
  const Lock lock;
  return lock.held() && heap.blocks.contains(p) && bytes >= threshold && heap.blocks.resize(p, bytes);
}

}  // namespace nearfield::heap

using nearfield::heap::give_back_retired;
using nearfield::heap::heap;
using nearfield::heap::Lock;

extern "C" {

__attribute__((visibility("default"))) const char* nearfield_heap_version() { return NEARFIELD_VERSION; }

__attribute__((visibility("default"))) int nearfield_heap_current(nearfield_heap_view* view) {
  const Lock lock;
  *view = {};
  if (lock.held()) give_back_retired(nearfield::heap::copied_on_the_way, false);
  if (!heap.blocks.exists() || !heap.shared.load(std::memory_order_relaxed)) return -1;
  view->base = heap.blocks.base();
  view->size = heap.blocks.size();
  view->used = heap.blocks.top_bytes();
  view->generation = heap.blocks.generation();
  return 0;
}

__attribute__((visibility("default"))) int nearfield_heap_serves() {
  const Lock lock;
  if (lock.held() && !heap.asked) nearfield::heap::read_settings();
  return !heap.off;
}

__attribute__((visibility("default"))) int nearfield_heap_descriptor(uint64_t generation) {
  const Lock lock;
  if (!heap.blocks.exists() || !heap.shared.load(std::memory_order_relaxed) || heap.blocks.generation() != generation)
    return -1;
  return fcntl(heap.blocks.file().get(), F_DUPFD_CLOEXEC, 0);
}

__attribute__((visibility("default"))) int nearfield_heap_contains(const void* address, size_t bytes) {
  if (!heap.shared.load(std::memory_order_seq_cst)) return 0;  // SYNC: heap-shared, noted
  const auto* const at = static_cast<const std::byte*>(address);
  if (!heap.blocks.contains(at) || !heap.blocks.contains(at + bytes - 1)) return 0;
  if (!heap.foreign.load(std::memory_order_relaxed)) [[likely]]
    return 1;
  const Lock lock;
  const auto begin = std::size_t(at - heap.blocks.base());
  return lock.held() && heap.blocks.contains(at) && !heap.blocks.is_foreign(begin, begin + bytes);
}

__attribute__((visibility("default"))) void nearfield_heap_use(const void* address, size_t bytes) {
  const Lock lock;
  if (lock.held() && heap.shared.load(std::memory_order_relaxed) && heap.blocks.contains(address))
    heap.blocks.note_use(std::size_t(static_cast<const std::byte*>(address) - heap.blocks.base()), bytes);
}

__attribute__((visibility("default"))) void nearfield_heap_on_fork(
    void (*visit)(void (*)(const void*, std::size_t, void*), void*)) {
  const Lock lock;
  heap.visit = visit;
}

__attribute__((visibility("default"))) void nearfield_heap_pause(int more) {
  heap.pauses.fetch_add(more, std::memory_order_relaxed);
}

__attribute__((visibility("default"))) int nearfield_heap_place(const nearfield_heap_placement* placement) {
  const Lock lock;
  heap.placed = true;
  heap.placement = *placement;
  return heap.blocks.exists() && !heap.blocks.place(*placement) ? -1 : 0;
}

__attribute__((visibility("default"))) void nearfield_heap_stats(nearfield_heap_statistics* out) {
  const Lock lock;
  const auto& now = heap.blocks.statistics();
  *out = {now.allocations, now.in_use, now.kept, now.highest, now.huge_extents, heap.forks};
  for (std::size_t i = 0; i < heap.retired.size(); ++i) out->bytes_in_use += heap.retired[i].used_bytes();
}
}
