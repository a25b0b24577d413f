#include "engine/reach/reach.hpp"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <map>
#include <mutex>

namespace nearfield::memory {
namespace {

constexpr const char* names[] = {"mapped", "xpmem", "cma", "copy-buffers"};
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

}  // namespace

const char* name(Way way) { return names[std::size_t(way)]; }

Result<std::uint32_t> parse_left_out(const std::string& text) {
  std::uint32_t mask = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    bool known = false;
    for (std::size_t w = 0; w < std::size_t(Way::copy_buffers); ++w) {
      if (word != std::string("^") + names[w]) continue;
      mask |= 1u << w;
      known = true;
    }
    if (!known) return Error{"\"" + word + "\" is not one of ^mapped, ^xpmem, ^cma"};
  }
  return mask;
}

Result<void> cma_read(pid_t pid, void* to, std::uint64_t remote, std::size_t bytes) {
  return transfer(process_vm_readv, "process_vm_readv", pid, to, remote, bytes);
}

Result<void> cma_write(pid_t pid, const void* from, std::uint64_t remote, std::size_t bytes) {
  return transfer(process_vm_writev, "process_vm_writev", pid, const_cast<void*>(from), remote, bytes);
}

Result<void> cma_probe(pid_t pid, std::uint64_t remote, std::uint64_t expected) {
  if (pid <= 0) return Error{"the peer's process is not visible from this pid namespace"};
  std::uint64_t seen = ~expected;
  if (auto read = cma_read(pid, &seen, remote, sizeof seen); !read) return read;
  if (seen != expected) return Error{"process " + std::to_string(pid) + " is another process in our pid namespace"};
  return {};
}

Result<Xpmem*> Xpmem::open() {
  static std::mutex mutex;
  static Xpmem instance;
  const std::lock_guard lock(mutex);
  if (instance.segment_ >= 0) return &instance;
  if (access("/dev/xpmem", R_OK | W_OK)) return system_error("opening /dev/xpmem (is the kernel module loaded?)");
  void* library = dlopen("libxpmem.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libxpmem.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{std::string("loading libxpmem: ") + dlerror()};
  auto load = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    return function != nullptr;
  };
  if (!load("xpmem_make", instance.make_) || !load("xpmem_get", instance.get_) ||
      !load("xpmem_attach", instance.attach_) || !load("xpmem_detach", instance.detach_))
    return Error{"libxpmem lacks a function"};
  constexpr std::size_t everything = ~std::size_t{0};
  constexpr int permit_mode = 1;
  instance.segment_ = instance.make_(nullptr, everything, permit_mode, reinterpret_cast<void*>(0600));
  if (instance.segment_ < 0) return system_error("xpmem_make");
  return &instance;
}

Result<void*> Xpmem::attach(std::int64_t peer_segment, std::uint64_t address, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::int64_t, std::int64_t> grants;
  constexpr std::uint64_t page = 4096;
  constexpr int read_write = 2, permit_mode = 1;
  const std::lock_guard lock(mutex);
  auto grant = grants.find(peer_segment);
  if (grant == grants.end()) {
    const std::int64_t apid = get_(peer_segment, read_write, permit_mode, reinterpret_cast<void*>(0600));
    if (apid < 0) return system_error("xpmem_get");
    grant = grants.emplace(peer_segment, apid).first;
  }
  const std::uint64_t begin = address / page * page;
  void* at = attach_({grant->second, std::int64_t(begin)}, bytes + (address - begin), nullptr);
  if (at == reinterpret_cast<void*>(-1)) return system_error("xpmem_attach");
  return static_cast<void*>(static_cast<std::byte*>(at) + (address - begin));
}

void Xpmem::detach(void* attached) noexcept {
  detach_(reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(attached) & ~std::uint64_t{4095}));
}

}  // namespace nearfield::memory
