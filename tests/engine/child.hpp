// Processes that tests fork.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <type_traits>

namespace nearfield::testing {

// A forked child that runs `body` and ends with the status that it returns, 0 for true. It also ends by what is thrown:
// in the test's frame, whose loops it would run as well, it would multiply.
template <class Body>
pid_t fork_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int status = 1;
  try {
    const auto result = body();
    status = std::is_same_v<decltype(result), const bool> ? !result : int(result);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", getpid(), error.what());
  }
  std::fflush(nullptr);
  _exit(status);
}

// What a child has ended with; -1 where it was not by itself.
inline int end_of(pid_t child) {
  int status = 0;
  if (child <= 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace nearfield::testing
