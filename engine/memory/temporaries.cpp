#include "engine/memory/temporaries.hpp"

#include <sys/mman.h>

#include <array>
#include <mutex>
#include <vector>

#include "engine/base/globals.hpp"
#include "engine/base/made.hpp"

namespace nearfield::memory {
namespace {

constexpr int smallest = 12;  // 4 KiB; size classes are powers of two
constexpr std::size_t keep_at_most = 64 << 20;

}  // namespace

struct TemporaryPool {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, 64> free;
  std::size_t kept = 0;
};

namespace {
TemporaryPool& pool() { return made(globals().temporaries); }
}  // namespace

Temporary::Temporary(std::size_t bytes) : data_(nullptr), class_(smallest) {
  while (class_ < 63 && (std::size_t{1} << class_) < bytes) ++class_;
  const std::size_t length = std::size_t{1} << class_;
  {
    const std::lock_guard lock(pool().mutex);
    auto& free = pool().free[class_];
    if (!free.empty()) {
      data_ = free.back();
      free.pop_back();
      pool().kept -= length;
      return;
    }
  }
  void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  if (length >= 2u << 20) madvise(at, length, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(at);
}

Temporary::~Temporary() {
  if (!data_) return;
  const std::size_t length = std::size_t{1} << class_;
  {
    const std::lock_guard lock(pool().mutex);
    if (pool().kept + length <= keep_at_most) try {
        pool().free[class_].push_back(data_);
        pool().kept += length;
        return;
      } catch (const std::bad_alloc&) {  // freed below
      }
  }
  munmap(data_, length);
}

std::size_t Temporary::kept() {
  const std::lock_guard lock(pool().mutex);
  return pool().kept;
}

}  // namespace nearfield::memory
