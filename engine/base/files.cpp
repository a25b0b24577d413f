#include "engine/base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace nearfield {

std::optional<std::string> read_file(const std::string& path) {
  int fd;
  do fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text(std::in_place);
  char piece[4096];  // files of /proc and /sys tell no length
  for (;;) {
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) text.reset();
    if (got <= 0) break;
    text->append(piece, std::size_t(got));
  }
  const int trouble = errno;
  close(fd);
  errno = trouble;
  return text;
}

}  // namespace nearfield
