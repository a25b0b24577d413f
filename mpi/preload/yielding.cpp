// sched_yield, which hosts call between two polls that have found nothing. A thread that is in a call of the host waits
// as ranks of Nearfield do (mpi/shim/process/yield_in_host.cpp). All other threads get the system call: they may hold
// an allocator's lock, so nothing else is called for them. The flag has static TLS, since other thread-local variables
// of a library may be allocated at their first use.
#include "mpi/preload/yielding.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "mpi/preload/loader.hpp"

namespace nearfield::preload {
namespace {
__attribute__((tls_model("initial-exec"))) thread_local constinit bool within = false;
}  // namespace

void serve_yields(bool (*yield_in_host)()) {
  __atomic_store_n(&loader.yield_in_host, yield_in_host, __ATOMIC_RELEASE);  // pairs with sched_yield
}

bool* in_host() { return &within; }

}  // namespace nearfield::preload

extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  using namespace nearfield::preload;
  if (within)
    if (auto* const yield_in_host = __atomic_load_n(&loader.yield_in_host, __ATOMIC_ACQUIRE);
        yield_in_host && yield_in_host())
      return 0;
  return int(syscall(SYS_sched_yield));
}
