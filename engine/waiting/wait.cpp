#include "engine/waiting/wait.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace nearfield::waiting {

void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t nanoseconds) noexcept {
  const timespec limit{time_t(nanoseconds / 1'000'000'000u), long(nanoseconds % 1'000'000'000u)};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futex_wake(Atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint64_t preemptions_of_this_thread() noexcept {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) ? 0 : std::uint64_t(usage.ru_nivcsw);
}

std::uint32_t pauses_in(std::uint64_t wanted) noexcept {
  static const double each = [] {
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t start = nanoseconds();
      for (int i = 0; i < 256; ++i) processor::pause();
      const double now = double(nanoseconds() - start) / 256;
      if (now < best) best = now;
    }
    return best < 1 ? 1 : best;
  }();
  return std::uint32_t(double(wanted) / each) + 1;
}

}  // namespace nearfield::waiting
