#include "heap/limits.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "heap/heap.hpp"

namespace nearfield::heap {
namespace {

// Returns the beginning of a file; empty if there is none.
template <std::size_t N>
const char* read_file(const char* path, char (&text)[N]) {
  text[0] = 0;
  const int fd = descriptors::open_to_read(path);
  if (fd < 0) return text;
  const ssize_t got = descriptors::read(fd, text, N - 1);
  text[std::max<ssize_t>(got, 0)] = 0;
  descriptors::close(fd);
  return text;
}

constexpr std::size_t longest = Texts::longest;
constexpr auto& path_text = heap.texts.path;
constexpr auto& groups_text = heap.texts.groups;

// Returns the least limit from the group `path` up to the mount point, which in a container is the container's own
// group.
std::size_t least(const char* root, const char* mount, const char* path, const char* file) {
  std::size_t limit = SIZE_MAX;
  char text[32];
  const int begin = std::snprintf(path_text, longest, "%s%s", root, mount);
  for (std::size_t length = std::strlen(path);; --length) {
    if (length && (path[length - 1] == '/' || (path[length] != '/' && path[length] != 0))) continue;
    const int used = std::snprintf(path_text + begin, longest - std::size_t(begin), "%.*s/%s", int(length), path, file);
    if (std::size_t(begin) + std::size_t(used) < longest) {
      const std::size_t bytes = std::strtoull(read_file(path_text, text), nullptr, 10);  // 0: "max", or no such file
      if (bytes) limit = std::min(limit, bytes);
    }
    if (length == 0) return limit;
  }
}

}  // namespace

std::size_t file_limit() {
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return files.rlim_cur;
}

bool address_space_is_scarce(const char* root) {
  rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) return true;
  char text[8];
  std::snprintf(path_text, longest, "%s/proc/sys/vm/overcommit_memory", root);
  return read_file(path_text, text)[0] == '2';
}

std::size_t memory_limit(const char* root) {
  std::size_t limit = std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
  // One group per line: "0::/path" of version 2, "4:memory:/path" of version 1.
  std::snprintf(path_text, longest, "%s/proc/self/cgroup", root);
  read_file(path_text, groups_text);
  bool any = false;
  for (char* line = groups_text; *line;) {
    char* const end = line + std::strcspn(line, "\n");
    char* const next = *end ? end + 1 : end;
    *end = 0;
    char* const controllers = std::strchr(line, ':');
    char* const group = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    line = next;
    if (!group) continue;
    *group = 0;
    any = true;
    if (controllers[1] == 0) limit = std::min(limit, least(root, "/sys/fs/cgroup", group + 1, "memory.max"));
    char* rest = nullptr;
    for (const char* name = strtok_r(controllers + 1, ",", &rest); name; name = strtok_r(nullptr, ",", &rest))
      if (!std::strcmp(name, "memory"))
        limit = std::min(limit, least(root, "/sys/fs/cgroup/memory", group + 1, "memory.limit_in_bytes"));
  }
  if (!any) limit = std::min(limit, least(root, "/sys/fs/cgroup", "", "memory.max"));
  return limit;
}

// Huge pages take memory that the program may never touch. So all processes together make them for an eighth of the
// memory at most, a process for its CPUs' share of that; and for large blocks only while plenty().
std::size_t eager_limit() {
  static const std::size_t limit = [] {
    cpu_set_t allowed;
    const int cpus = sched_getaffinity(0, sizeof allowed, &allowed) ? 64 : CPU_COUNT(&allowed);
    return std::max<std::size_t>(memory_limit() / 8 / std::size_t(std::max(cpus, 2)), 64u << 20);
  }();
  return limit;
}

bool plenty(std::size_t bytes) {
  char text[512];
  const char* const available = std::strstr(read_file("/proc/meminfo", text), "MemAvailable:");
  return available && std::strtoull(available + 13, nullptr, 10) * 1024 / 8 > bytes;
}

}  // namespace nearfield::heap
