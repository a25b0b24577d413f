#include "engine/memory/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "engine/base/files.hpp"
#include "engine/memory/madvise.hpp"

namespace nearfield::memory::numa {
namespace {

constexpr std::size_t page = 4096, most_nodes = 1024, word_bits = 8 * sizeof(unsigned long);

Error refused(const char* tried) {
  Error error = system_error(tried);
  if (errno == EPERM || errno == ENOSYS) error.text += "; containers deny it unless they are given CAP_SYS_NICE";
  if (errno == EINVAL) error.text += "; this process may not use that node";
  return error;
}

}  // namespace

Result<void> prefer(void* at, std::size_t bytes, std::span<const int> nodes) {
  std::array<unsigned long, most_nodes / word_bits> mask{};
  for (const int node : nodes)
    if (std::size_t(node) < most_nodes) mask[std::size_t(node) / word_bits] |= 1ul << std::size_t(node) % word_bits;
  const int mode = nodes.empty() ? MPOL_DEFAULT : nodes.size() == 1 ? MPOL_PREFERRED : MPOL_INTERLEAVE;
  // The kernel uses one bit less than the argument says.
  if (syscall(SYS_mbind, at, bytes, mode, nodes.empty() ? nullptr : mask.data(), nodes.empty() ? 0 : most_nodes + 1, 0))
    return refused("asking the kernel to place memory (mbind)");
  return {};
}

Result<void> fill(void* at, std::size_t bytes) {
  int failed;
  do failed = madvise(at, bytes, MADV_POPULATE_WRITE) ? errno : 0;
  while (failed == EINTR || failed == EAGAIN);
  if (!failed) return {};
  if (failed != EINVAL) return system_error("filling memory that is to be placed", failed);
  // Before Linux 5.14.
  auto* const begin = static_cast<volatile char*>(at);
  for (std::size_t i = 0; i < bytes; i += page) begin[i] = begin[i];
  return {};
}

Result<Census> where(const void* at, std::size_t bytes) {
  constexpr std::size_t at_once = 512;
  Census census;
  const auto* next = static_cast<const char*>(at);
  for (std::size_t left = (bytes + page - 1) / page; left;) {
    const std::size_t count = std::min(left, at_once);
    std::array<const void*, at_once> pages;
    std::array<int, at_once> status;
    for (std::size_t i = 0; i < count; ++i, next += page) pages[i] = next;
    if (syscall(SYS_move_pages, 0, count, pages.data(), nullptr, status.data(), 0))
      return refused("asking the kernel where memory lies (move_pages)");
    for (std::size_t i = 0; i < count; ++i) (status[i] < 0 ? census.absent : census.bytes[status[i]]) += page;
    left -= count;
  }
  return census;
}

std::size_t room(int node, const std::string& root) {
  const std::string text = contents(root + "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
  const auto bytes_behind = [&](std::string_view name, std::size_t absent) {  // "Node 0 MemFree:  123 kB"
    const std::size_t at = text.find(name);
    return at == text.npos ? absent : std::size_t(std::strtoull(text.c_str() + at + name.size(), nullptr, 10)) << 10;
  };
  const std::size_t free = bytes_behind(" MemFree:", SIZE_MAX), total = bytes_behind(" MemTotal:", 0);
  if (free == SIZE_MAX) return SIZE_MAX;
  const std::size_t kept = total / 64;  // the kernel turns to other nodes a little before nothing is left
  return free > kept ? free - kept : 0;
}

}  // namespace nearfield::memory::numa
