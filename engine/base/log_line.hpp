// Begins a line of the log with its speaker, and writes it to its file. The engine and libnearfield.so write such
// lines; the latter does not link the C++ library, so nothing of that is used here.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/base/early_settings.hpp"

namespace nearfield::early {

struct Speaker {
  char host[65] = "";
  int process = 0, rank = -1;  // rank in the world; -1: unknown (yet)
};

inline Speaker speaker(int rank) {
  Speaker who;
  if (gethostname(who.host, sizeof who.host)) std::strcpy(who.host, "unknown");
  who.host[sizeof who.host - 1] = '\0';
  who.process = int(getpid());
  who.rank = rank;
  return who;
}

// Writes "nearfield: node7 rank 3: ", the beginning of a line, and returns its length. pre: `line` has 128 bytes.
inline std::size_t begin_line(char* line, const Speaker& who) {
  const bool known = who.rank >= 0;
  return std::size_t(std::snprintf(line, 128, "nearfield: %s %s %d: ", who.host, known ? "rank" : "process",
                                   known ? who.rank : who.process));
}

// Expands a pattern (NEARFIELD_LOG_FILE, NEARFIELD_TRACE) to a path: %h is the host, %p the process, %r the rank in the
// world ("unknown" until MPI_Init is through), %% a percent sign. Returns nullptr, or an error text.
inline const char* expand_pattern(const char* pattern, const Speaker& who, char* path, std::size_t room) {
  std::size_t used = 0;
  for (const char* at = pattern; *at; ++at) {
    char piece[sizeof who.host] = {*at};
    if (*at == '%') switch (*++at) {
        case 'h': std::memcpy(piece, who.host, sizeof piece); break;
        case 'p': std::snprintf(piece, sizeof piece, "%d", who.process); break;
        case 'r':
          if (who.rank < 0) std::strcpy(piece, "unknown");
          else std::snprintf(piece, sizeof piece, "%d", who.rank);
          break;
        case '%': break;
        default: return "only %h, %p, %r and %% may follow a percent sign";
      }
    const std::size_t length = std::strlen(piece);
    if (used + length >= room) return "the path is too long";
    std::memcpy(path + used, piece, length);
    used += length;
  }
  path[used] = '\0';
  return nullptr;
}

// Writes a whole line by one call, so that lines of several processes do not mix. The file is opened for each line: the
// program could close a descriptor that we keep, which then could be another file's. The line goes to standard error if
// the file cannot be opened, or `pattern` is "" or nullptr. `complained`: standard error already has the reason.
inline void write_line(const char* line, std::size_t bytes, const Speaker& who, const char* pattern, bool& complained) {
  if (pattern && *pattern) {
    char path[4096];
    const char* wrong = expand_pattern(pattern, who, path, sizeof path);
    const int file = wrong ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (!wrong && file < 0) wrong = std::strerror(errno);
    const bool written = file >= 0 && write(file, line, bytes) == ssize_t(bytes);
    if (!wrong && !written) wrong = std::strerror(errno);
    if (file >= 0) close(file);
    if (written) return;
    if (!__atomic_exchange_n(&complained, true, __ATOMIC_RELAXED)) {
      char complaint[4096 + 256];
      std::size_t used = begin_line(complaint, who);
      const int length =
          std::snprintf(complaint + used, sizeof complaint - used,
                        "%s=%.4000s: %s; the log goes on to standard error\n", log_file.variable, pattern, wrong);
      used += std::size_t(length);
      [[maybe_unused]] const auto written = write(STDERR_FILENO, complaint, used);
    }
  }
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line, bytes);
}

}  // namespace nearfield::early
