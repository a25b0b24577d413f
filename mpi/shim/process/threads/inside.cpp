#include "mpi/shim/process/threads/inside.hpp"

#include "mpi/shim/process/stand_in.hpp"

namespace nearfield::mpi {

const PerThread<Inside, threads::at::inside> inside;

void return_to(const Inside& before) {
  for (; inside->lent > before.lent; --inside->lent) StandInScope::take_back();
  *inside = before;
  mark_in_host() = before.host.now;
  if (!before.recorded) waiting::waited = nullptr;
}

}  // namespace nearfield::mpi
