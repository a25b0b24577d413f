// sched_yield, which hosts call between two looks that have found nothing. A thread that a call of MPI has handed on to
// its host gives way as ranks of Nearfield do (mpi/shim/giving_way.cpp); all others get what they have asked for.
#include "mpi/preload/yielding.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace nearfield::preload {
namespace {
bool (*serves)();
}

void serve_yields(bool (*give_way)()) {
  __atomic_store_n(&serves, give_way, __ATOMIC_RELEASE);  // pairs with sched_yield
}

}  // namespace nearfield::preload

extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  auto* const give_way = __atomic_load_n(&nearfield::preload::serves, __ATOMIC_ACQUIRE);
  return give_way && give_way() ? 0 : int(syscall(SYS_sched_yield));
}
