// Lines on standard error, or in the files of NEARFIELD_LOG_FILE (log_line.hpp).
#pragma once
#include <cstdint>

namespace nearfield {

// Their names are in early_settings.hpp.
enum class LogLevel : std::uint8_t { off, error, warn, info, debug };

// Writes one line if NEARFIELD_LOG includes `level`.
void log_line(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void set_log_level(LogLevel level);
void set_log_rank(int rank);  // rank of this process in the world, once it is known

}  // namespace nearfield
