// What the tests of the shared heap have in common.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "heap/heap.h"

inline int nearfield_heap_contains(const void* address) { return nearfield_heap_contains(address, 1); }

namespace nearfield::heap::testing {

inline nearfield_heap_statistics statistics() {
  nearfield_heap_statistics now;
  nearfield_heap_stats(&now);
  return now;
}

// Runs `body` in a forked child; whether it returned true.
template <class Body>
bool child_succeeds(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

inline std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Bytes of a line of /proc/self/status, such as "RssAnon".
inline std::size_t status_bytes(const char* what) {
  std::size_t found = 0;
  char line[256];
  FILE* const file = std::fopen("/proc/self/status", "r");
  while (file && std::fgets(line, sizeof line, file))
    if (!std::strncmp(line, what, std::strlen(what)) && line[std::strlen(what)] == ':')
      found = std::strtoull(line + std::strlen(what) + 1, nullptr, 10) << 10;
  if (file) std::fclose(file);
  return found;
}

}  // namespace nearfield::heap::testing
