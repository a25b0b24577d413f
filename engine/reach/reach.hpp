// How a peer's bytes are got at. Each way is tried between the actual peers, never assumed from configuration.
//
//   mapped        the bytes lie in a segment: plain load and store
//   xpmem         the kernel module maps a peer's pages: plain load and store
//   cma           process_vm_readv and process_vm_writev: one copy by system call
//   copy buffers  always: two copies through a segment
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "engine/base/result.hpp"

namespace nearfield::memory {

enum class Way : std::uint8_t { mapped, xpmem, cma, copy_buffers };
const char* name(Way way);

// "^cma,^xpmem" as a mask with bit 1 << Way set for each way left out. Copy buffers cannot be left out.
Result<std::uint32_t> parse_left_out(const std::string& text);

// Whole transfers of any length, between this process and `pid`.
Result<void> cma_read(pid_t pid, void* to, std::uint64_t remote_address, std::size_t bytes);
Result<void> cma_write(pid_t pid, const void* from, std::uint64_t remote_address, std::size_t bytes);
// Reads eight bytes of the peer and compares: the process may be a different one, seen from another pid namespace.
Result<void> cma_probe(pid_t pid, std::uint64_t remote_address, std::uint64_t expected);

// XPMEM through dlopen: no dependency at build time.
class Xpmem {
 public:
  static Result<Xpmem*> open();                      // one per process
  std::int64_t segment() const { return segment_; }  // our whole address space, to give to peers
  Result<void*> attach(std::int64_t peer_segment, std::uint64_t address, std::size_t bytes);
  void detach(void* attached) noexcept;

 private:
  struct Address {
    std::int64_t apid;
    std::int64_t offset;
  };
  Xpmem() = default;
  std::int64_t (*make_)(void*, std::size_t, int, void*) = nullptr;
  std::int64_t (*get_)(std::int64_t, int, int, void*) = nullptr;
  void* (*attach_)(Address, std::size_t, void*) = nullptr;
  int (*detach_)(void*) = nullptr;
  std::int64_t segment_ = -1;
};

}  // namespace nearfield::memory
