#include "engine/waiting/wake_word.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace nearfield::waiting {

void WakeWord::nap(std::uint32_t seen, std::uint64_t nanoseconds) noexcept {
  const timespec limit{time_t(nanoseconds / 1'000'000'000u), long(nanoseconds % 1'000'000'000u)};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rings_), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void WakeWord::wake() noexcept {
  rings_.fetch_add(1, std::memory_order_release);  // SYNC: wake-word
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rings_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace nearfield::waiting
