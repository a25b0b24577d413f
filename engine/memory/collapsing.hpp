// A budget of time for making huge pages.
//
// MADV_COLLAPSE asks a kernel worker of every CPU to empty its lists of pages and waits for all of them, once per call
// and one caller at a time. On a quiet machine 64 MiB take an eighth of the time of their small pages, on a busy one a
// call may take a hundred milliseconds. So calls are few and long: none in a process's first second, one process of a
// node at a time. Their time, beyond that of the small pages that they replace, is at most one part in `share` of the
// time that the process has run.
#pragma once
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "engine/base/clock.hpp"
#include "engine/memory/descriptors.hpp"
#include "engine/memory/madvise.hpp"

namespace nearfield::memory {

// All times are nanoseconds. Threads may overwrite each other's charge: the budget need not be exact.
class Allowance {
 public:
  static constexpr std::uint64_t first = 1'000'000'000;  // no call before this age of the process
  static constexpr std::uint64_t share = 200;            // the heap and the engine have an allowance each

  // Notes that the process has begun.
  void begin(std::uint64_t now) {
    std::uint64_t none = 0;
    begin_.compare_exchange_strong(none, now, std::memory_order_relaxed);
  }
  // Returns how many of `wanted` huge pages one call may make now. `spared`: the time of making the small pages that
  // one huge page replaces.
  std::size_t permits(std::size_t wanted, std::uint64_t spared, std::uint64_t now) {
    begin(now);
    const std::uint64_t age = now - begin_.load(std::memory_order_relaxed);
    const std::uint64_t spent = spent_.load(std::memory_order_relaxed);
    if (age < first || spent >= age / share) return 0;
    const std::uint64_t each = estimate();
    if (each <= spared) return wanted;
    return std::min(wanted, std::size_t((age / share - spent) / (each - spared)));
  }
  void charge(std::size_t made, std::uint64_t spared, std::uint64_t took) {
    constexpr auto relaxed = std::memory_order_relaxed;
    each_.store((3 * estimate() + took / made) / 4, relaxed);
    if (took > made * spared) spent_.store(spent_.load(relaxed) + took - made * spared, relaxed);
  }

 private:
  std::uint64_t estimate() const {
    const std::uint64_t known = each_.load(std::memory_order_relaxed);
    return known ? known : 1'000'000;
  }
  std::atomic<std::uint64_t> begin_{0}, spent_{0};
  std::atomic<std::uint64_t> each_{0};  // estimate for one huge page; 0, as in the heap's zeroed object: none is known
};

// The node's lock: a lock on a file that all processes see. The kernel releases it when its holder ends.
class CollapsingAlone {
 public:
  CollapsingAlone() : file_(descriptors::open_to_read("/sys/kernel/mm/transparent_hugepage/enabled")) {
    held_ = file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0;
  }
  ~CollapsingAlone() {
    if (file_ >= 0) descriptors::close(file_);
  }
  CollapsingAlone(const CollapsingAlone&) = delete;
  explicit operator bool() const { return held_; }

 private:
  int file_;
  bool held_;
};

struct Collapsed {
  std::size_t pages = 0;  // huge pages that were tried; 0: not permitted now
  int error = 0;          // errno if not all were made
};
// Makes huge pages of the range at `at`, a multiple of their length: as many as are permitted of `wanted`. The contents
// stay.
inline Collapsed collapse(Allowance& collapsing, void* at, std::size_t huge_page, std::size_t wanted,
                          std::uint64_t spared = 0) {
  const std::uint64_t begin = nanoseconds();
  const std::size_t pages = collapsing.permits(wanted, spared, begin);
  if (pages == 0) return {};
  const CollapsingAlone alone;
  if (!alone) return {};
  Collapsed done{pages};
  auto* const bytes = static_cast<std::byte*>(at);
  // MADV_COLLAPSE needs a page in each range.
  for (std::size_t i = 0; i < pages && !done.error; ++i)
    if (syscall(SYS_madvise, bytes + i * huge_page, 4096, MADV_POPULATE_WRITE)) done.error = errno;
  if (!done.error && syscall(SYS_madvise, at, pages * huge_page, MADV_COLLAPSE)) done.error = errno;
  collapsing.charge(pages, spared, nanoseconds() - begin);
  return done;
}

}  // namespace nearfield::memory
