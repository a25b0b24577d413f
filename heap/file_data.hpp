// Copies of parts of a sparse file, such as a memfd that is mapped elsewhere too.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "engine/memory/descriptors.hpp"

namespace nearfield::heap {

// Copies [begin, end) of the file to `to`, which reads as zero. Holes of the file are not copied, so they take no
// memory there either. Returns the offset up to which the file has been copied: `end`, unless reading fails.
inline off_t copy_data(int fd, off_t begin, off_t end, std::byte* to) {
  for (off_t at = begin; at < end;) {
    at = lseek(fd, at, SEEK_DATA);
    if (at < 0 || at >= end) return end;
    const off_t hole = lseek(fd, at, SEEK_HOLE);
    for (const off_t stop = hole < 0 ? end : std::min(hole, end); at < stop;) {
      const ssize_t got = memory::descriptors::read_at(fd, to + (at - begin), std::size_t(stop - at), at);
      if (got <= 0) return at;
      at += got;
    }
  }
  return end;
}

}  // namespace nearfield::heap
