#include "engine/memory/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

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
  // The kernel takes one bit less than it is told.
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
  std::ifstream file(root + "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
  // "Node 0 MemFree:  123 kB"
  std::size_t free = SIZE_MAX, total = 0;
  for (std::string word; file >> word;) {
    std::size_t kib = 0;
    if (word == "MemTotal:" && file >> kib) total = kib << 10;
    if (word == "MemFree:" && file >> kib) free = kib << 10;
  }
  if (free == SIZE_MAX) return SIZE_MAX;
  const std::size_t kept = total / 64;  // the kernel turns to other nodes a little before nothing is left
  return free > kept ? free - kept : 0;
}

}  // namespace nearfield::memory::numa
