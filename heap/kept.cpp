#include "heap/kept.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "heap/heap.hpp"

namespace nearfield::heap {
namespace {

std::byte* page_of(const void* at) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at) / page * page);
}

// Changes the table under the lock and with signals blocked, so that no handler forks in between.
template <class Change>
void change(Change change) {
  const Lock lock;
  if (!lock.held()) return;
  const NoSignals none;
  change();
}

void remove(std::size_t i) {
  heap.kept[i] = heap.kept[heap.kept.size() - 1];
  heap.kept.cut(heap.kept.size() - 1);
}

void add(const KeptRange& range) {
  heap.kept_unknown |= !heap.kept.add(range);
  heap.any_kept.store(true, std::memory_order_relaxed);
}

// Takes [begin, end) out of the ranges for which `which` holds, and calls `visit` for what was taken.
template <class Which, class Visit>
void cut(const std::byte* begin, const std::byte* end, Which which, Visit visit) {
  for (std::size_t i = heap.kept.size(); i-- > 0;) {
    const KeptRange range = heap.kept[i];
    if (!which(range) || range.begin >= end || range.end <= begin) continue;
    remove(i);
    KeptRange rest = range;
    rest.end = const_cast<std::byte*>(std::max<const std::byte*>(begin, range.begin));
    if (rest.begin < rest.end) add(rest);
    rest = range;
    rest.begin = const_cast<std::byte*>(std::min<const std::byte*>(end, range.end));
    if (rest.begin < rest.end) add(rest);
    visit(KeptRange{std::max(range.begin, const_cast<std::byte*>(begin)),
                    std::min(range.end, const_cast<std::byte*>(end)), range.key, range.kind});
  }
}

// Bytes that the kernel counts as pinned by this process; 0 where that cannot be read.
std::size_t pinned_bytes() {
  char text[4096];
  const int fd = open_in_proc("/proc/self/status");
  if (fd < 0) return 0;
  const ssize_t got = descriptors::read(fd, text, sizeof text - 1);
  descriptors::close(fd);
  text[std::max<ssize_t>(got, 0)] = 0;
  const char* const at = std::strstr(text, "VmPin:");
  return at ? std::strtoull(at + 6, nullptr, 10) << 10 : 0;
}

}  // namespace

void keep(const void* begin, std::size_t bytes, Kept kind, const void* key) {
  if (bytes == 0) return;
  change([&] {
    const KeptRange range = {page_of(begin), page_of(static_cast<const std::byte*>(begin) + bytes - 1) + page, key,
                             kind};
    if (kind == Kept::locked || kind == Kept::unforked || kind == Kept::wiped)
      cut(range.begin, range.end, [&](const KeptRange& old) { return old.kind == kind; }, [](const KeptRange&) {});
    add(range);
  });
}

void keep_no_more(const void* begin, std::size_t bytes, Kept kind) {
  change([&] {
    cut(
        page_of(begin), page_of(static_cast<const std::byte*>(begin) + bytes + page - 1),
        [&](const KeptRange& range) { return range.kind == kind; }, [](const KeptRange&) {});
  });
}

void keep_no_more(const void* key) {
  change([&] {
    for (std::size_t i = heap.kept.size(); key && i-- > 0;)
      if (heap.kept[i].key == key) remove(i);
  });
}

void keep_all(bool all) {
  change([&] {
    heap.all_locked = all;
    if (all) return;
    for (std::size_t i = heap.kept.size(); i-- > 0;)  // munlockall
      if (heap.kept[i].kind == Kept::locked) remove(i);
  });
}

int mark(void* begin, std::size_t bytes, int advice) {
  const bool sets = advice == MADV_DONTFORK || advice == MADV_WIPEONFORK;
  if ((!sets && advice != MADV_DOFORK && advice != MADV_KEEPONFORK) || !heap.any.load(std::memory_order_relaxed))
    return 1;
  const bool wipes = advice == MADV_WIPEONFORK || advice == MADV_KEEPONFORK;
  const Kept kind = wipes ? Kept::wiped : Kept::unforked;
  {
    const Lock lock;
    if (!lock.held() || !owner(begin)) return 1;
  }
  if (!wipes) {
    if (const int failed = advise(begin, bytes, advice)) return failed;
  } else if (reinterpret_cast<std::uintptr_t>(begin) % page) {  // the kernel wipes private memory only: we do
    errno = EINVAL;
    return -1;
  }
  sets ? keep(begin, bytes, kind) : keep_no_more(begin, bytes, kind);
  return 0;
}

void release_kept(std::byte* begin, std::size_t bytes) {
  const NoSignals none;
  cut(
      begin, begin + bytes, [](const KeptRange&) { return true; },
      [](const KeptRange& range) {
        const auto length = std::size_t(range.end - range.begin);
        if (range.kind == Kept::unforked) advise(range.begin, length, MADV_DOFORK);
        if (range.kind == Kept::locked) syscall(SYS_munlock, range.begin, length);
      });
}

void forget_marks(const std::byte* begin, const std::byte* end) {
  const NoSignals none;
  cut(begin, end, [](const KeptRange& range) { return range.kind >= Kept::locked; }, [](const KeptRange&) {});
}

bool keeps_all() {
  if (heap.all_locked || heap.kept_unknown) return true;
  std::size_t explained = 0;
  for (const KeptRange& range : heap.kept)
    if (range.kind == Kept::counted) explained += std::size_t(range.end - range.begin);
  return pinned_bytes() > explained;
}

void inherit_kept() {
  for (const KeptRange& range : heap.kept) {
    const auto bytes = std::size_t(range.end - range.begin);
    if (!owner(range.begin)) continue;  // the kernel's own marks are in effect
    if (range.kind == Kept::unforked) munmap(range.begin, bytes);
    if (range.kind != Kept::wiped) continue;
    mmap(range.begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    advise(range.begin, bytes, MADV_WIPEONFORK);
  }
  heap.kept.clear();
  heap.all_locked = heap.kept_unknown = false;
}

}  // namespace nearfield::heap
