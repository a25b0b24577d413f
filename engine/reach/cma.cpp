// process_vm_readv and process_vm_writev: one system call copies, in either direction, any memory of the peer's.
#include <sys/uio.h>

#include "engine/reach/peers.hpp"

namespace nearfield::reach {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

Result<void> transfer(Transfer call, const char* what, pid_t pid, void* local, std::uint64_t remote,
                      std::size_t bytes) {
  constexpr std::size_t most = 1u << 30;  // one call moves less than 2 GiB
  auto* at = static_cast<std::byte*>(local);
  while (bytes) {
    iovec here{at, bytes < most ? bytes : most};
    iovec there{reinterpret_cast<void*>(remote), here.iov_len};
    const ssize_t moved = call(pid, &here, 1, &there, 1, 0);
    if (moved < 0) {
      if (errno == EINTR) continue;
      const int number = errno;
      std::string tried = std::string(what) + " with process " + std::to_string(pid);
      if (number == EPERM) tried += " (a container's seccomp profile or kernel.yama.ptrace_scope may forbid it)";
      return system_error(tried, number);
    }
    if (moved == 0) return Error{std::string(what) + " with process " + std::to_string(pid) + " moved nothing"};
    at += moved;
    remote += std::uint64_t(moved);
    bytes -= std::size_t(moved);
  }
  return {};
}

Result<void> read(const Peer& peer, void* to, std::uint64_t address, std::size_t bytes) {
  return transfer(process_vm_readv, "process_vm_readv", peer.pid, to, address, bytes);
}

Result<void> write(const Peer& peer, const void* from, std::uint64_t address, std::size_t bytes) {
  return transfer(process_vm_writev, "process_vm_writev", peer.pid, const_cast<void*>(from), address, bytes);
}

Result<std::uint64_t> open(Peers&) { return std::uint64_t{0}; }

// Reads the header of the peer's segment: in our pid namespace that pid may be another process.
Result<void> meet(Peers&, Peer& peer, std::uint64_t) {
  if (peer.pid <= 0) return Error{"the peer's process is not visible from this PID namespace"};
  std::uint64_t seen = ~peer.card.probe;
  if (auto done = read(peer, &seen, peer.card.header, sizeof seen); !done) return done;
  if (seen != peer.card.probe)
    return Error{"process " + std::to_string(peer.pid) + " is another process in this PID namespace"};
  return {};
}

}  // namespace

constinit const MemoryMapper cma_mapper = {
    .name = "cma",
    .title = "CMA",
    .about = "process_vm_readv and process_vm_writev, one copy by system call",
    .costs = {.access = 0.065, .call = 1200, .attach = 0, .page = 0},
    .open = open,
    .meet = meet,
    .read = read,
    .write = write,
};

}  // namespace nearfield::reach
