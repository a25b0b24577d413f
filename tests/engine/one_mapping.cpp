// Of a segment this process has one mapping, however many members of it map it: ThreadSanitizer knows memory by its
// address alone. The linker puts these in the kernel's place (--wrap).
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, long);
int __real_munmap(void*, std::size_t);
void* __wrap_mmap(void*, std::size_t, int, int, int, long);
int __wrap_munmap(void*, std::size_t);
}

namespace {

using File = std::pair<dev_t, ino_t>;
struct Mapped {
  File file;
  int users;
};
struct All {
  std::mutex mutex;
  std::map<void*, Mapped> mapped;
  std::map<File, void*> at;
};
All& all() {
  static All& one = *new All;
  return one;
}

}  // namespace

void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, long offset) {
  struct stat about {};
  if (!(flags & MAP_SHARED) || fd < 0 || fstat(fd, &about))
    return __real_mmap(at, bytes, protection, flags, fd, offset);
  const File file{about.st_dev, about.st_ino};
  const std::lock_guard lock(all().mutex);
  if (const auto known = all().at.find(file); known != all().at.end()) {
    ++all().mapped.at(known->second).users;
    if (flags & MAP_FIXED) __real_munmap(at, bytes);  // room that was kept for it
    return known->second;
  }
  void* const got = __real_mmap(at, bytes, protection, flags, fd, offset);
  if (got != MAP_FAILED) {
    all().at[file] = got;
    all().mapped[got] = {file, 1};
  }
  return got;
}

int __wrap_munmap(void* at, std::size_t bytes) {
  const std::lock_guard lock(all().mutex);
  if (const auto known = all().mapped.find(at); known != all().mapped.end()) {
    if (--known->second.users) return 0;
    all().at.erase(known->second.file);
    all().mapped.erase(known);
  }
  return __real_munmap(at, bytes);
}
// NOLINTEND(bugprone-reserved-identifier)
