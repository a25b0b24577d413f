// Files that a host creates in a /dev/shm with too little room, as in many containers. A host that finds no room ends
// by SIGBUS at the first page that is missing, or looks at the free room first and does not use shared memory. So such
// a file is a memfd, and its name is a symbolic link to a descriptor of the process that creates it:
//
//   creator   statfs, statvfs              report as much room as a /dev/shm without a given size has
//             shm_open(O_CREAT), mkstemp   memfd_create; symlink NAME -> /proc/PID/fd/N, which fails if NAME exists
//             open(O_CREAT), ftruncate     ftruncate does the same: until then nobody has been told the name
//   others    open                         nothing is changed: the kernel follows the link
//             shm_open                     does not follow links (O_NOFOLLOW), so we follow those that are ours
//   anybody   unlink, shm_unlink           remove the link; the creator closes N when it makes its next memfd, or ends
//
// Mappings outlive name and creator, as those of files do. Where there is no /dev/shm, names of shm_open lie in /tmp. A
// rank in another PID namespace cannot open the link; without us its host would have ended by SIGBUS.
//
// Calls outside of the host, and all calls while there is room, act as the C library's functions do.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/base/early_settings.hpp"
#include "heap/system.hpp"
#include "mpi/local_ranks.hpp"
#include "mpi/preload/loader.hpp"
#include "mpi/preload/yielding.hpp"

#define EXPORT __attribute__((visibility("default")))

namespace nearfield::preload {
namespace {

[[gnu::constructor]] void look_up() {
  using heap::find_next;
  find_next(loader.next.mkstemp, "mkstemp");
  find_next(loader.next.ftruncate, "ftruncate");
  find_next(loader.next.statfs, "statfs");
  find_next(loader.next.statvfs, "statvfs");
}

// Returns the functions that ours replace. Looks them up itself, since other constructors may run before ours.
auto& next() {
  if (!loader.next.statvfs) look_up();
  return loader.next;
}

constexpr char in_shm[] = "/dev/shm/", in_tmp[] = "/tmp/";
// Room for each rank that counts as enough: more than hosts create at start.
constexpr std::uint64_t bytes_of_rank = 16 << 20;

struct Path {
  char text[sizeof NamedMemory::name] = {};
};
Path path(const char* directory, const char* name) {
  Path whole;
  std::snprintf(whole.text, sizeof whole.text, "%s%s", directory, name);
  return whole;
}
// The path of a descriptor of this process: for itself, and for other processes.
Path here(int fd) {
  Path whole;
  std::snprintf(whole.text, sizeof whole.text, "/proc/self/fd/%d", fd);
  return whole;
}
Path for_others(int fd) {
  Path whole;
  std::snprintf(whole.text, sizeof whole.text, "/proc/%d/fd/%d", getpid(), fd);
  return whole;
}
Path target_of(const char* link) {
  Path target;
  if (readlink(link, target.text, sizeof target.text - 1) < 0) target.text[0] = '\0';
  return target;
}
bool begins(const Path& path, const char* with) { return !std::strncmp(path.text, with, std::strlen(with)); }

// The name that shm_open is given, without slashes; nullptr (errno): it is none.
const char* name_of(const char* given) {
  while (*given == '/') ++given;
  if (*given && !std::strchr(given, '/') && std::strlen(given) <= NAME_MAX) return given;
  errno = EINVAL;
  return nullptr;
}

std::uint64_t ranks_here() {
  const int ranks = mpi::local_ranks();
  return std::uint64_t(ranks ? ranks : sysconf(_SC_NPROCESSORS_ONLN));
}

// Returns whether the host makes this call and /dev/shm has less `room` than the ranks need, or than `bytes`. False if
// the parent is in another PID namespace: this may be the only rank in its own, so others could not follow the link.
bool lacks_room(std::uint64_t& room, std::uint64_t bytes = 0) {
  if (!*in_host() || early::is_off(early::shm.variable) || early::is_off("NEARFIELD") || getppid() == 0) return false;
  struct statvfs about {};
  if (next().statvfs(in_shm, &about) == 0 && !about.f_blocks) return false;  // without limit
  room = std::uint64_t(about.f_bavail) * about.f_frsize;
  return room < std::max(ranks_here() * bytes_of_rank, bytes);
}

// Reports half of the machine's memory as free, as a tmpfs without a given size does.
template <class About>
void widen(const char* path, About& about) {
  std::uint64_t room = 0;
  const std::size_t length = sizeof in_shm - 2;
  if (std::strncmp(path, in_shm, length) || (path[length] && path[length] != '/') || !lacks_room(room)) return;
  constexpr std::uint64_t most = 1 << 30;  // hosts count in ints
  const std::uint64_t blocks =
      std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE)) / 2 / std::uint64_t(about.f_bsize);
  about.f_blocks = about.f_bfree = about.f_bavail = std::min(blocks, most);
}

// Closes descriptors whose names are gone. Returns a place for one more; nullptr: there is none. pre: the lock is held.
NamedMemory* place() {
  NamedMemory* free = nullptr;
  for (NamedMemory& each : loader.named) {
    const int fd = each.file.get();
    if (fd >= 0 && !std::strcmp(target_of(each.name).text, for_others(fd).text)) continue;
    each.file.close();
    free = &each;
  }
  return free;
}

// Makes a memfd whose name is `link` and returns a descriptor of it; -1 with errno set on failure, and if the name
// exists, unless the link `replaces` that file.
int create(const Path& link, mode_t mode, int flags, std::uint64_t room, bool replaces = false) {
  Path made = link;
  if (replaces) std::snprintf(made.text, sizeof made.text, "%snearfield-%d", in_shm, getpid());
  pthread_mutex_lock(&loader.naming);
  NamedMemory* const named = place();
  const int fd = named ? memfd_create("nearfield-shm", MFD_CLOEXEC) : -1;
  const heap::File memory(fd);
  int given = -1;
  if (fd >= 0 && fchmod(fd, mode & S_IRWXU) == 0 && symlink(for_others(fd).text, made.text) == 0) {
    given = open(made.text, O_RDWR | flags);  // as others will
    struct stat about {};
    const bool right = given >= 0 && fstat(given, &about) == 0 && memory.is(about.st_dev, about.st_ino);
    if (given >= 0 && (!right || (replaces && rename(made.text, link.text)))) {
      close(given);
      given = -1;
    }
    if (given < 0) unlink(made.text);
  }
  const int error = errno;
  if (given >= 0) {
    std::strcpy(named->name, link.text);
    named->file = memory;
    if (!loader.told_of_small_shm)
      say(Level::info, "/dev/shm has %llu KiB free, so the memory that the host MPI creates there (%s) is a memfd",
          (unsigned long long)(room >> 10), link.text);
    loader.told_of_small_shm = true;
  } else if (fd >= 0) {
    close(fd);
  }
  pthread_mutex_unlock(&loader.naming);
  errno = error;
  return given;
}

// Puts a memfd behind a descriptor of an empty file in /dev/shm, and behind the file's name.
void replace(int fd, std::uint64_t room) {
  struct stat about {};
  const Path file = target_of(here(fd).text);
  if (fstat(fd, &about) || about.st_size || about.st_nlink != 1 || !begins(file, in_shm)) return;
  const int of_descriptor = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
  const int memory = create(file, about.st_mode, 0, room, true);
  if (memory < 0) return;
  dup3(memory, fd, of_descriptor);
  close(memory);
}

// Opens the memfd behind a link that a process of this user has made. Returns -1 if the file is no such link.
int follow(const Path& link, int flags) {
  struct stat about {};
  if (lstat(link.text, &about) || !S_ISLNK(about.st_mode) || about.st_uid != geteuid()) return -1;
  const int fd = begins(target_of(link.text), "/proc/") ? open(link.text, flags | O_CLOEXEC) : -1;
  if (fd < 0 || begins(target_of(here(fd).text), "/memfd:nearfield-shm")) return fd;
  close(fd);  // of a process that has got the number of one that has ended
  return -1;
}

}  // namespace
}  // namespace nearfield::preload

extern "C" {

EXPORT int shm_open(const char* given, int flags, mode_t mode) {
  using namespace nearfield::preload;
  const char* const name = name_of(given);
  if (!name) return -1;
  const Path path_in_shm = path(in_shm, name), path_in_tmp = path(in_tmp, name);
  if (std::uint64_t room = 0; flags & O_CREAT && lacks_room(room)) {
    const Path& link = access(in_shm, F_OK) ? path_in_tmp : path_in_shm;
    const int fd = create(link, mode, O_CLOEXEC, room);
    if (fd >= 0 || (errno == EEXIST && flags & O_EXCL)) return fd;
  }
  const int fd = int(syscall(SYS_openat, AT_FDCWD, path_in_shm.text, flags | O_NOFOLLOW | O_CLOEXEC, mode));
  if (fd >= 0) return fd;
  const int error = errno == EISDIR ? EINVAL : errno;
  for (const Path* link : {&path_in_shm, &path_in_tmp})
    if (const int followed = error == ELOOP || error == ENOENT ? follow(*link, flags & (O_ACCMODE | O_TRUNC)) : -1;
        followed >= 0)
      return followed;
  errno = error;
  return -1;
}

EXPORT int shm_unlink(const char* given) {
  using namespace nearfield::preload;
  const char* const name = name_of(given);
  if (!name) {
    errno = ENOENT;
    return -1;
  }
  if (unlink(path(in_shm, name).text) == 0) return 0;
  const int error = errno == EPERM ? EACCES : errno;
  const Path link = path(in_tmp, name);
  if (error == ENOENT && begins(target_of(link.text), "/proc/") && unlink(link.text) == 0) return 0;
  errno = error;
  return -1;
}

EXPORT int mkstemp(char* pattern) {
  using namespace nearfield::preload;
  constexpr std::size_t random = 6;
  const std::size_t length = std::strlen(pattern);
  Path link;
  if (std::uint64_t room = 0; length >= sizeof in_shm - 1 + random && length < sizeof link.text &&
                              !std::strncmp(pattern, in_shm, sizeof in_shm - 1) && lacks_room(room)) {
    std::strcpy(link.text, pattern);
    for (int attempt = 0; attempt < 100; ++attempt) {
      unsigned char bytes[random];
      if (getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes)) break;
      for (std::size_t i = 0; i < random; ++i) link.text[length - random + i] = char('a' + bytes[i] % 26);
      const int fd = create(link, S_IRUSR | S_IWUSR, 0, room);
      if (fd >= 0) std::strcpy(pattern, link.text);
      if (fd >= 0 || errno != EEXIST) return fd;
    }
  }
  return next().mkstemp(pattern);
}

EXPORT int ftruncate(int fd, off_t length) noexcept {
  using namespace nearfield::preload;
  const int before = errno;
  if (std::uint64_t room = 0; length > 0 && lacks_room(room, std::uint64_t(length))) replace(fd, room);
  errno = before;
  return next().ftruncate(fd, length);
}
EXPORT int ftruncate64(int fd, off64_t length) noexcept { return ftruncate(fd, length); }

EXPORT int statfs(const char* path, struct statfs* about) noexcept {
  using namespace nearfield::preload;
  const int code = next().statfs(path, about);
  if (code == 0) widen(path, *about);
  return code;
}
EXPORT int statfs64(const char* path, struct statfs64* about) noexcept {
  return statfs(path, reinterpret_cast<struct statfs*>(about));
}

EXPORT int statvfs(const char* path, struct statvfs* about) noexcept {
  using namespace nearfield::preload;
  const int code = next().statvfs(path, about);
  if (code == 0) widen(path, *about);
  return code;
}
EXPORT int statvfs64(const char* path, struct statvfs64* about) noexcept {
  return statvfs(path, reinterpret_cast<struct statvfs*>(about));
}
}
