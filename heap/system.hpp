// System calls of the heap, which neither allocate nor call functions that this library interposes.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/memory/descriptors.hpp"
#include "engine/memory/madvise.hpp"

namespace nearfield::heap {

namespace descriptors = memory::descriptors;

// Finds the function that ours replaces: the C library's, or that of a library loaded before it. Call it at load if
// programs may call the function in signal handlers, where dlsym is not allowed.
template <class Function>
void find_next(Function*& function, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  std::memcpy(&function, &found, sizeof found);
}

inline int advise(void* at, std::size_t bytes, int advice) { return int(syscall(SYS_madvise, at, bytes, advice)); }

inline int protect(void* at, std::size_t bytes, int protection) {
  return int(syscall(SYS_mprotect, at, bytes, protection));
}

// A descriptor that is checked before each use: programs close descriptors that are not theirs. Then the number may
// stand for a file of the program, which we must not punch, seal or map.
class File {
 public:
  constexpr File() = default;
  explicit File(int fd) : fd_(fd) {
    struct stat about;
    if (fd_ < 0 || fstat(fd_, &about)) return;
    device_ = about.st_dev;
    inode_ = about.st_ino;
  }
  int get() const {
    struct stat about;
    return fd_ >= 0 && fstat(fd_, &about) == 0 && is(about.st_dev, about.st_ino) ? fd_ : -1;
  }
  bool is(dev_t device, ino_t inode) const { return device == device_ && inode == inode_; }
  File duplicate() const { return File(get() < 0 ? -1 : fcntl(fd_, F_DUPFD_CLOEXEC, 3)); }
  void close() {
    if (get() >= 0) descriptors::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = 0;  // 0, since the heap is all zeros at first; get() refuses it, as no file has device 0 and inode 0
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Blocks signals of this thread while it lives, so that a fork in a handler does not interrupt it.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

// A table that grows by mapping memory, and never shrinks.
template <class T>
class Table {
 public:
  bool add(const T& entry) {
    if (count_ == room_ && !grow()) return false;
    at_[count_++] = entry;
    return true;
  }
  void clear() { count_ = 0; }
  void cut(std::size_t count) { count_ = count; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return at_[i]; }
  T* begin() { return at_; }
  T* end() { return at_ + count_; }

 private:
  // Uses system calls: a library that hooks mmap might allocate memory in its hook.
  bool grow() {
    const std::size_t bytes = room_ ? room_ * 2 * sizeof(T) : 16384;
    void* const more = reinterpret_cast<void*>(
        at_ ? syscall(SYS_mremap, at_, room_ * sizeof(T), bytes, MREMAP_MAYMOVE)
            : syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (more == MAP_FAILED) return false;
    at_ = static_cast<T*>(more);
    room_ = bytes / sizeof(T);
    return true;
  }
  T* at_ = nullptr;
  std::size_t count_ = 0, room_ = 0;
};

// One line of /proc/self/maps.
struct Piece {
  std::byte *begin, *end;
  int protection;
  bool shared;
  dev_t device;
  ino_t inode;
  bool sparse;  // shared memory of Nearfield: most of it has never been touched, and must not be
};
// Lists the mappings in [begin, end), cut to that range. Returns false if /proc/self/maps cannot be read or memory is
// lacking. `maps`: a descriptor of that file, which this function closes; -1: it opens the file itself.
bool pieces_of(const std::byte* begin, const std::byte* end, Table<Piece>& pieces, int maps = -1);

}  // namespace nearfield::heap
