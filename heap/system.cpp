#include "heap/system.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace nearfield::heap {
namespace {

// Parses "7f00-7f01 rw-s 00000000 00:01 1234 /memfd:nearfield-heap (deleted)", character by character.
class Line {
 public:
  // Returns whether the line ends here.
  bool take(char c) {
    if (c == '\n') return true;
    if (field_ == path) {
      if (c == ' ' && at_ == 0) return false;
      ours_ = at_ < name.size() ? (at_ == 0 || ours_) && c == name[at_] : ours_;
      ++at_;
      return false;
    }
    if (c == (field_ == begin ? '-' : field_ == major_number ? ':' : ' ')) {
      ++field_;
      at_ = 0;
      return false;
    }
    const unsigned digit = c <= '9' ? unsigned(c - '0') : unsigned(c - 'a') + 10;
    if (field_ == rights) right_[at_++ & 3] = c;
    else value_[field_] = value_[field_] * (field_ == inode ? 10 : 16) + digit;
    return false;
  }
  bool good() const { return field_ >= inode; }
  Piece piece() const {
    return {
        reinterpret_cast<std::byte*>(value_[begin]),
        reinterpret_cast<std::byte*>(value_[end]),
        (right_[0] == 'r' ? PROT_READ : 0) | (right_[1] == 'w' ? PROT_WRITE : 0) | (right_[2] == 'x' ? PROT_EXEC : 0),
        right_[3] == 's',
        makedev(unsigned(value_[major_number]), unsigned(value_[minor_number])),
        ino_t(value_[inode]),
        ours_ && at_ > name.size() && right_[3] == 's'};
  }

 private:
  enum Field { begin, end, rights, offset, major_number, minor_number, inode, path };
  static constexpr std::string_view name = "/memfd:nearfield";
  int field_ = begin;
  unsigned at_ = 0;
  bool ours_ = false;
  char right_[4] = {};
  std::uintptr_t value_[path] = {};
};

}  // namespace

bool pieces_of(const std::byte* begin, const std::byte* end, Table<Piece>& pieces, int maps) {
  const int fd = maps >= 0 ? maps : descriptors::open_to_read("/proc/self/maps");
  if (fd < 0) return false;
  char text[4096];
  Line line;
  bool good = true;
  for (bool beyond = false; good && !beyond;) {
    const ssize_t got = descriptors::read(fd, text, sizeof text);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      good = got == 0;
      break;
    }
    for (ssize_t i = 0; i < got && good && !beyond; ++i) {
      if (!line.take(text[i])) continue;
      Piece piece = line.piece();
      beyond = piece.begin >= end;
      if (line.good() && !beyond && piece.end > begin) {
        piece.begin = std::max(piece.begin, const_cast<std::byte*>(begin));
        piece.end = std::min(piece.end, const_cast<std::byte*>(end));
        good = pieces.add(piece);
      }
      line = {};
    }
  }
  descriptors::close(fd);
  return good;
}

}  // namespace nearfield::heap
