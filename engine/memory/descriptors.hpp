// Descriptors of our own, in programs that may have closed the standard ones, and in functions that must be no
// cancellation points (malloc, free, fork): glibc's open, read, pread, close and fallocate are, so these are system
// calls.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace nearfield::memory::descriptors {

inline int open_to_read(const char* path) { return int(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC)); }
inline long read(int fd, void* to, std::size_t bytes) { return syscall(SYS_read, fd, to, bytes); }
inline long read_at(int fd, void* to, std::size_t bytes, off_t at) { return syscall(SYS_pread64, fd, to, bytes, at); }
inline void close(int fd) { syscall(SYS_close, fd); }
inline int allocate(int fd, int mode, off_t at, off_t bytes) {
  return int(syscall(SYS_fallocate, fd, mode, at, bytes));
}

// Moves a new descriptor away from standard input, output and error: what the program writes there would go into our
// memory. -1 stays -1.
inline int above_standard(int fd) {
  if (fd < 0 || fd > 2) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return moved;
}

// Creates a sealable memfd; -1: errno says why not.
inline int create_memory(const char* name) {
  return above_standard(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

}  // namespace nearfield::memory::descriptors
