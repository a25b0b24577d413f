// Functions by which a process limits its own address space. Address space that we only reserve must not count against
// that limit, but later allocations must. So the region is cut behind its last block. Existing blocks stay shared, and
// freed ones are allocated again; all other allocations come from the next allocator.
//
// We do not notice a limit that the program sets by a raw system call, or that another process sets.
#include <sys/resource.h>

#include <cerrno>

#include "heap/heap.hpp"

#define EXPORT __attribute__((visibility("default")))

namespace {

using nearfield::heap::heap;
using nearfield::heap::Lock;
using nearfield::heap::Mutex;

int set(pid_t pid, int what, const rlimit* limit, rlimit* before) {
  const int result = int(syscall(SYS_prlimit64, pid, what, limit, before));
  if (result || !limit || what != RLIMIT_AS || (pid && pid != getpid()) || Mutex::in_vfork()) return result;
  const int kept = errno;
  const Lock lock;
  heap.limited.store(limit->rlim_cur != RLIM_INFINITY, std::memory_order_relaxed);
  if (lock.held() && heap.limited.load(std::memory_order_relaxed) && heap.blocks.exists())
    heap.blocks.unmap_beyond_top();
  errno = kept;
  return result;
}

}  // namespace

extern "C" {

EXPORT int setrlimit(__rlimit_resource_t what, const rlimit* limit) __THROW {
  return set(0, int(what), limit, nullptr);
}

EXPORT int setrlimit64(__rlimit_resource_t what, const rlimit64* limit) __THROW {
  return set(0, int(what), reinterpret_cast<const rlimit*>(limit), nullptr);
}

EXPORT int prlimit(pid_t pid, __rlimit_resource what, const rlimit* limit, rlimit* before) __THROW {
  return set(pid, int(what), limit, before);
}

EXPORT int prlimit64(pid_t pid, __rlimit_resource what, const rlimit64* limit, rlimit64* before) __THROW {
  return set(pid, int(what), reinterpret_cast<const rlimit*>(limit), reinterpret_cast<rlimit*>(before));
}
}
