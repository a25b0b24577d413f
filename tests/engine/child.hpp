// Processes that tests fork.
#pragma once
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
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

// Has this process say where it is, and fail, if it lives for so many seconds more.
inline void fail_after(unsigned seconds) {
  signal(SIGALRM, [](int) {
    signal(SIGALRM, SIG_DFL);  // what follows is not for signal handlers
    alarm(30);
    void* frames[32];
    const int count = backtrace(frames, 32);
    char command[1024];
    int length = std::snprintf(command, sizeof command, "addr2line -Cfpise /proc/%d/exe", getpid());
    Dl_info program{}, of{};
    dladdr(frames[0], &program);
    for (int i = 0; i < count && length < int(sizeof command) - 20; ++i)
      if (dladdr(frames[i], &of) && of.dli_fbase == program.dli_fbase)
        length += std::snprintf(command + length, 20, " %#tx",
                                static_cast<char*>(frames[i]) - static_cast<char*>(of.dli_fbase) - 1);
    std::fprintf(stderr, "process %d takes too long; it is here, the innermost call first, without libraries:\n",
                 getpid());
    if (std::system((std::string(command) + " | sed 's/^/    /' >&2").c_str()) != 0)
      std::fputs("    unknown\n", stderr);
    _exit(1);
  });
  alarm(seconds);
}

}  // namespace nearfield::testing
