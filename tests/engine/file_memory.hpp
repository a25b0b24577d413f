// Memory of which Nearfield knows nothing, and which the stand-in for XPMEM can map (tests/xpmem).
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace nearfield::testing {

// Stays, with its file open.
inline std::byte* file_memory(std::size_t bytes) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, off_t(bytes))) return nullptr;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace nearfield::testing
