#include "engine/waiting/wait.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/globals.hpp"
#include "engine/base/log.hpp"

namespace nearfield::waiting {

// Opens the file each time: in a forked child an open one would be the parent's, and the program may close descriptors
// that it does not know.
std::uint64_t delay_of_this_thread() noexcept {
  const int error = errno;
  char text[64] = {};  // running, delay, times
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  const bool told = file >= 0 && read(file, text, sizeof text - 1) > 0;
  if (file >= 0) close(file);
  errno = error;
  const char* const delay = told ? std::strchr(text, ' ') : nullptr;
  return delay ? std::strtoull(delay, nullptr, 10) : 0;
}

// Logs a begin of contention and its end, and then nothing for a while: beside a process that works now and then
// contention comes and goes some hundred times a second.
void log_contention(bool begun, const Contention& contention, std::uint64_t now) noexcept {
  constexpr std::uint64_t quiet = 10'000'000'000;
  auto& next = globals().contention_line_due;
  auto& end_wanted = globals().contention_end_wanted;
  const auto times = (unsigned long long)contention.begun();
  const double seconds = double(contention.lasted(now)) * 1e-9;
  if (!begun) {
    if (end_wanted.exchange(false, std::memory_order_relaxed))
      log_line(LogLevel::info,
               "other processes no longer compete for the CPUs of this process (contention so far: %llu times, %.3f s)",
               times, seconds);
    return;
  }
  std::uint64_t due = next.load(std::memory_order_relaxed);
  if (now < due || !next.compare_exchange_strong(due, now + quiet, std::memory_order_relaxed)) return;
  end_wanted.store(true, std::memory_order_relaxed);
  log_line(LogLevel::info,
           "other processes compete for the CPUs of this process, so its waits sleep (contention so far: %llu times, "
           "%.3f s)",
           times, seconds);
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
