// The clock of the node: the same in all of its processes.
#pragma once
#include <time.h>

#include <cstdint>

namespace nearfield {

inline std::uint64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}

}  // namespace nearfield
