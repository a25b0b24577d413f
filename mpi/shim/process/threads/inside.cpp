#include "mpi/shim/process/threads/inside.hpp"

#include "mpi/shim/process/host_scope.hpp"

namespace nearfield::mpi {

const PerThread<Inside, threads::at::inside> inside;

void return_to(const Inside& before) {
  for (; inside->host_scopes > before.host_scopes; --inside->host_scopes) HostScope::leave();
  *inside = before;
  mark_in_host() = before.polls_host || before.host.now;
  if (!before.recorded) waiting::waited = nullptr;
}

}  // namespace nearfield::mpi
