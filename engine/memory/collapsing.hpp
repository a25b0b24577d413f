// What making huge pages may cost.
//
// MADV_COLLAPSE asks a kernel worker of every CPU to empty its lists of pages, and waits for all of them, one caller at
// a time. Where CPUs are busy it takes a hundred times what clearing 2 MiB takes. Such calls may take a share of the
// time and no more; small pages, which is what there is without them, cost some tenths of a millisecond.
#pragma once
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/memory/madvise.hpp"

namespace nearfield::memory {

// Nanoseconds everywhere. A leaky bucket, kept as the time at which it will be empty.
class Allowance {
 public:
  static constexpr std::uint64_t expected = 1'000'000;  // what a call may take for nothing
  static constexpr std::uint64_t at_once = 50'000'000;  // that may be lost before the first pause
  static constexpr std::uint64_t share = 32;            // one in so many is lost on the long run

  bool permits(std::uint64_t now) const { return empty_at_.load(std::memory_order_relaxed) <= now + share * at_once; }
  void charge(std::uint64_t begin, std::uint64_t end) {
    if (end - begin <= expected) return;
    const std::uint64_t from = std::max(empty_at_.load(std::memory_order_relaxed), end);
    // Of two threads that meet here one goes uncounted.
    empty_at_.store(from + share * (end - begin - expected), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> empty_at_{0};
};
inline constinit Allowance collapsing;  // of the process

enum class Collapsed { yes, no, not_now };
// One huge page at `at`, a multiple of its length that has a page mapped. `no`: errno says why.
inline Collapsed collapse(void* at, std::size_t huge_page) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
  };
  const std::uint64_t begin = now();
  if (!collapsing.permits(begin)) return Collapsed::not_now;
  const bool done = syscall(SYS_madvise, at, huge_page, MADV_COLLAPSE) == 0;
  collapsing.charge(begin, now());
  return done ? Collapsed::yes : Collapsed::no;
}

}  // namespace nearfield::memory
