// Segments: the memory that processes of a node share.
//
// A segment is a sealed memfd. Its owner creates it sparse and large, so that it never has to move or grow, and
// reserves space in it before use, so that a full machine is an Error here and not a SIGBUS somewhere else. Peers get
// the descriptor over a socket (reach/mailbox.hpp) and map all of it. It has no name; the kernel frees it with the last
// process that maps it, however that process ends.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <utility>

#include "engine/base/result.hpp"

namespace nearfield::memory {

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, std::size_t size) : base_(base), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();
  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }
  bool contains(const void* address, std::size_t bytes) const {
    const auto* at = static_cast<const std::byte*>(address);
    return at >= base_ && at < base_ + size_ && bytes <= std::size_t(base_ + size_ - at);
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

// The owner's mapping.
class Segment : public Mapping {
 public:
  // Sparse, `virtual_bytes` long; where the kernel refuses that much address space, half as long, and so on to 16 MiB.
  static Result<Segment> create(std::size_t virtual_bytes);
  Segment(Segment&& other) noexcept : Mapping(std::move(other)), fd_(std::exchange(other.fd_, -1)) {}
  ~Segment();

  int fd() const { return fd_; }
  std::size_t memory() const;  // bytes of existing pages, as the kernel counts them
  // Makes sure that [offset, offset + bytes) has memory behind it. The error names the limit that was met.
  Result<void> reserve(std::size_t offset, std::size_t bytes);
  // Returns the whole pages inside the range to the kernel; they read as zero afterwards and must be reserved again.
  void give_back(std::size_t offset, std::size_t bytes) noexcept;

 private:
  Segment(Mapping mapping, int fd) : Mapping(std::move(mapping)), fd_(fd) {}
  int fd_ = -1;
};

// Returns the length of a process's segment on a machine of `memory` bytes.
std::size_t segment_bytes(std::size_t memory, std::size_t cpus);
// Returns the bytes that this process may map (ulimit -v); SIZE_MAX: no limit.
std::size_t address_space_limit();

// A peer's segment, mapped for reading and writing. Checks that the descriptor is a memfd sealed against resizing,
// so that no peer can truncate it while we access it.
class PeerSegment : public Mapping {
 public:
  static Result<PeerSegment> map(int fd /* taken over and closed */);
  // Opens descriptor `fd` of process `pid` from that process's table. An Error: the kernel forbids it (the process is
  // in another pid namespace, or not dumpable). The caller verifies by the segment's contents that it is the right
  // process.
  static Result<PeerSegment> open(pid_t pid, int fd);

 private:
  explicit PeerSegment(Mapping mapping) : Mapping(std::move(mapping)) {}
};

}  // namespace nearfield::memory
