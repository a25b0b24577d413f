#include "engine/base/log.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/base/globals.hpp"
#include "engine/base/log_line.hpp"

namespace nearfield {
namespace {

const char* file_pattern() {
  static const std::string pattern = [] {
    const char* const text = std::getenv(early::log_file.variable);
    return std::string(text ? text : "");
  }();
  return pattern.c_str();
}

}  // namespace

void set_log_level(LogLevel level) { globals().log_level.store(level, std::memory_order_relaxed); }
void set_log_rank(int rank) { globals().log_rank.store(rank, std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) {
  Globals& all = globals();
  if (level > all.log_level.load(std::memory_order_relaxed)) return;
  char line[2048];
  const early::Speaker who = early::speaker(all.log_rank.load(std::memory_order_relaxed));
  std::size_t used = early::begin_line(line, who);
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  used = std::min(used + std::size_t(std::max(length, 0)), sizeof line - 2);
  line[used++] = '\n';
  early::write_line(line, used, who, file_pattern(), all.log_has_complained);
}

}  // namespace nearfield
