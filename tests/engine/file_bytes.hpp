// How much memory the kernel has behind a file, such as a segment's.
#pragma once
#include <sys/stat.h>

#include <cstddef>

namespace nearfield::testing {

inline std::size_t file_bytes(int fd) {
  struct stat about {};
  return fstat(fd, &about) ? 0 : std::size_t(about.st_blocks) * 512;
}

}  // namespace nearfield::testing
