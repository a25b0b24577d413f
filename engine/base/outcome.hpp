// A line for `nearfield run`: whether Nearfield serves this process. The command makes an empty file and names it in
// the environment; each process appends a line, unless it does not see that file (on another node, in a container).
// Nothing of the C++ library is used, since libnearfield.so does not link it.
//
//   served                 Nearfield serves what it can
//   host REASON            the host serves every call, or there is no other rank to talk to
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "engine/base/early_settings.hpp"

namespace nearfield::early {

// `reason`: why the host serves every call; nullptr: it does not.
inline void leave_word(const char* reason) {
  const char* const file = std::getenv(outcome.variable);
  if (!file || !*file) return;
  char line[1024];
  const int length = reason ? std::snprintf(line, sizeof line, "host %.1000s\n", reason)
                            : std::snprintf(line, sizeof line, "served\n");
  const int at = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (at < 0) return;
  [[maybe_unused]] const auto written = write(at, line, std::size_t(length));
  close(at);
}

}  // namespace nearfield::early
