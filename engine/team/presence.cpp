#include "engine/team/presence.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nearfield::team {
namespace {

constexpr int names = 4;  // of each process; a stranger may have taken some

std::string nth(const std::string& name, int n) { return n ? name + "." + std::to_string(n) : name; }

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
  const int why = errno;
  if (fd >= 0) close(fd);
  errno = why;
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
  const auto bound = [](int fd, const sockaddr* at, socklen_t length) { return bind(fd, at, length) == 0; };
  for (int n = 0; n < names; ++n) {
    if (with_name(nth(name, n), bound) >= 0) return true;
    if (errno != EADDRINUSE) break;
  }
  return false;
}

bool Presence::exists(const std::string& name) {
  // A socket of another type is no process of ours, but is there as well; and so is one that a sandbox (Landlock) keeps
  // from us, which is asked after the name has been found.
  const auto found = [](int fd, const sockaddr* at, socklen_t length) {
    return connect(fd, at, length) == 0 || errno == EPROTOTYPE || errno == EPERM || errno == EACCES;
  };
  for (int n = 0; n < names; ++n)
    if (const int fd = with_name(nth(name, n), found); fd >= 0) {
      close(fd);
      return true;
    }
  return false;
}

std::vector<int> Presence::absentees(int size) const {
  std::vector<int> found;
  for (int number = 0; number < size; ++number)
    if (!exists(name_of(number))) found.push_back(number);
  return found;
}

}  // namespace nearfield::team
