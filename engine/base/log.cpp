#include "engine/base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace nearfield {
namespace {

std::atomic<LogLevel> log_level{LogLevel::warn};

}  // namespace

void set_log_level(LogLevel level) { log_level.store(level, std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) {
  if (level > log_level.load(std::memory_order_relaxed)) return;
  char line[2048];
  int used = std::snprintf(line, sizeof line, "nearfield: ");
  va_list arguments;
  va_start(arguments, format);
  used += std::vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  if (used > int(sizeof line) - 2) used = sizeof line - 2;
  line[used++] = '\n';
  // One write, so that lines of several ranks do not mix.
  if (write(STDERR_FILENO, line, used) < 0) return;
}

}  // namespace nearfield
