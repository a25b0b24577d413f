#include "engine/memory/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/memory/descriptors.hpp"
#include "engine/processor/instrumented.hpp"

namespace nearfield::memory {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t page = 4096, huge_page = 2 << 20;

Result<Mapping> map(int fd, std::size_t bytes) {
  // Aligned to a huge page: the kernel would map huge pages of the file as small ones otherwise.
  void* const place = mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return system_error("mapping " + std::to_string(bytes >> 20) + " MiB of shared memory");
  auto* const begin = static_cast<std::byte*>(place);
  auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(place) + huge_page - 1) &
                                                     ~std::uintptr_t{huge_page - 1});
  // Access is granted afterwards: under mlockall(MCL_FUTURE) mmap would fill an accessible mapping from end to end.
  void* at = mmap(aligned, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (at == MAP_FAILED || mprotect(at, bytes, PROT_READ | PROT_WRITE)) {
    const Error error = system_error("mapping " + std::to_string(bytes >> 20) + " MiB of shared memory");
    munmap(place, bytes + huge_page);
    return error;
  }
  if (aligned > begin) munmap(begin, std::size_t(aligned - begin));
  if (const std::size_t rest = std::size_t(begin + huge_page - aligned))
    munmap(aligned + (bytes + page - 1) / page * page, rest);
  madvise(at, bytes, MADV_DONTDUMP);  // keeps shared memory out of core files
  return Mapping(static_cast<std::byte*>(at), bytes);
}

std::size_t limit(decltype(RLIMIT_AS) what) {
  rlimit now;
  return getrlimit(what, &now) || now.rlim_cur == RLIM_INFINITY ? SIZE_MAX : now.rlim_cur;
}

}  // namespace

std::size_t address_space_limit() { return limit(RLIMIT_AS); }

std::size_t segment_bytes(std::size_t memory, std::size_t cpus) {
  // Valgrind visits every page of every segment.
  constexpr std::size_t small = 128 << 20;
  if (processor::is_instrumented()) return small;
  // Every rank maps every other's segment: all of them must fit a quarter of the address space, at two ranks to a CPU.
  const std::size_t ranks = std::max<std::size_t>(64, 2 * cpus);
  const std::size_t whole = std::min(memory, (std::size_t{32} << 40) / ranks);
  // A limited address space is for the program: all ranks' segments take a sixteenth of it, with one rank to a CPU.
  return std::min(whole, address_space_limit() / 16 / std::max<std::size_t>(cpus, 2));
}

Mapping::~Mapping() {
  if (base_) munmap(base_, size_);
}

Segment::~Segment() {
  if (fd_ >= 0) close(fd_);
}

Result<Segment> Segment::create(std::size_t virtual_bytes) {
  constexpr std::size_t smallest = 16 << 20;
  virtual_bytes = std::max(virtual_bytes, smallest) / page * page;
  // Beyond the limit on file sizes the kernel sends SIGXFSZ.
  const std::size_t longest = limit(RLIMIT_FSIZE) / page * page;
  if (longest < smallest)
    return Error{"files of this process are limited to " + std::to_string(longest >> 10) +
                 " KiB (ulimit -f), but shared memory needs " + std::to_string(smallest >> 20) + " MiB"};
  virtual_bytes = std::min(virtual_bytes, longest);
  Error last;
  for (; virtual_bytes >= smallest; virtual_bytes = virtual_bytes / 2 / page * page) {
    const int fd = descriptors::create_memory("nearfield");
    if (fd < 0) return system_error("creating shared memory (memfd_create)");
    if (ftruncate(fd, off_t(virtual_bytes)) || fcntl(fd, F_ADD_SEALS, wanted_seals)) {
      last = system_error("sizing and sealing shared memory of " + std::to_string(virtual_bytes >> 20) + " MiB");
      close(fd);
      continue;
    }
    auto mapping = map(fd, virtual_bytes);
    if (mapping) return Segment(std::move(*mapping), fd);
    last = mapping.error();
    close(fd);
  }
  last.text += "; is the address space limited (ulimit -v)?";
  return last;
}

std::size_t Segment::memory() const {
  constexpr std::size_t block = 512;
  struct stat about {};
  return fstat(fd_, &about) ? 0 : std::size_t(about.st_blocks) * block;
}

Result<void> Segment::reserve(std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return {};
  if (offset > size() || bytes > size() - offset) {
    return Error{"the segment of " + std::to_string(size() >> 20) + " MiB is full"};
  }
  const std::size_t begin = offset / page * page, end = (offset + bytes + page - 1) / page * page;
  // In pieces, since older kernels undo all of a call that a signal interrupts.
  constexpr std::size_t piece = 1 << 20;
  int failed = 0;
  for (std::size_t at = begin; at < end && !failed; at += piece) {
    do failed = fallocate(fd_, 0, off_t(at), off_t(std::min(piece, end - at))) ? errno : 0;
    while (failed == EINTR);
  }
  if (failed)
    return system_error(
        "reserving " + std::to_string(bytes >> 10) +
            " KiB of shared memory (is the machine's memory, or the memory limit of this container or job, used up?)",
        failed);
  return {};
}

void Segment::give_back(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
  if (begin < end) (void)!fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(begin), off_t(end - begin));
}

Result<PeerSegment> PeerSegment::map(int fd) {
  if (fd < 0) return Error{"a peer's memory came without its descriptor; are too many files open (ulimit -n)?"};
  struct stat about {};
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & wanted_seals) != wanted_seals || fstat(fd, &about) || about.st_size < off_t(page)) {
    close(fd);
    return Error{"a peer passed a descriptor that is not a sealed segment"};
  }
  auto mapping = memory::map(fd, std::size_t(about.st_size));
  const int failed = errno;
  close(fd);
  if (!mapping) {
    errno = failed;
    return mapping.error();
  }
  return PeerSegment(std::move(*mapping));
}

Result<PeerSegment> PeerSegment::open(pid_t pid, int fd) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  // The pid may be another process in our pid namespace, and opening a file that is no memfd may block or do harm.
  char target[64] = {};
  if (readlink(path.c_str(), target, sizeof target - 1) < 0) return system_error("looking at " + path);
  if (!std::string_view(target).starts_with("/memfd:nearfield")) return Error{path + " is not a segment of Nearfield"};
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) return system_error("opening " + path);
  return map(opened);
}

}  // namespace nearfield::memory
