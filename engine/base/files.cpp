#include "engine/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace nearfield {

std::optional<std::string> read_file(const std::string& path) {
  int fd;
  do fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text(std::in_place);
  char piece[4096];  // files of /proc and /sys have no length
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

// Where others may write, a name may be a link of theirs. What a process has left that was killed here goes first.
bool write_whole(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".part";
  const auto make = [&] {
    return open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  };
  int file = make();
  if (file < 0 && errno == EEXIST && unlink(unfinished.c_str()) == 0) file = make();
  bool good = file >= 0;
  for (std::size_t done = 0; good && done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) done += std::size_t(written);
  }
  if (file >= 0) good = close(file) == 0 && good;
  if (good && rename(unfinished.c_str(), path.c_str()) == 0) return true;
  const int trouble = errno;
  if (file >= 0) unlink(unfinished.c_str());
  errno = trouble;
  return false;
}

std::string absolute_path(const std::string& path, bool pattern) {
  char here[4096];
  if (path.empty() || path[0] == '/' || !getcwd(here, sizeof here)) return path;
  std::string text;
  for (const char* at = here; *at; ++at) text.append(pattern && *at == '%' ? 2 : 1, *at);
  return text + "/" + path;
}

}  // namespace nearfield
