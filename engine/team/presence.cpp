#include "engine/team/presence.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nearfield::team {
namespace {

// Returns a socket on which `use` with that abstract name has succeeded; -1 otherwise.
int with_name(const std::string& name, bool (*use)(int fd, const sockaddr*, socklen_t)) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof at.sun_path - 1);
  std::memcpy(at.sun_path + 1, name.data(), length);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool good =
      fd >= 0 && use(fd, reinterpret_cast<sockaddr*>(&at), socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length));
  if (good) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::uint64_t hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

Presence::Presence(const std::string& job, int number)
    : prefix_("near-" + std::to_string(hash(job)) + "-" + std::to_string(geteuid()) + "-"), number_(number) {}

bool Presence::claim(const std::string& name) {
  return with_name(name, [](int fd, const sockaddr* at, socklen_t length) { return bind(fd, at, length) == 0; }) >= 0;
}

bool Presence::exists(const std::string& name) {
  const int fd =
      with_name(name, [](int fd, const sockaddr* at, socklen_t length) { return connect(fd, at, length) == 0; });
  if (fd >= 0) close(fd);
  return fd >= 0;
}

std::vector<int> Presence::absentees(int size) const {
  std::vector<int> found;
  for (int number = 0; number < size; ++number)
    if (!exists(name_of(number))) found.push_back(number);
  return found;
}

}  // namespace nearfield::team
