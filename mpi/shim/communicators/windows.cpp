// Windows are the host's; we only count them: while there are some, ranks that wait in our calls look after the host in
// every round (law 3 of docs/architecture.md). The count is a hint to threads that wait; nothing is ordered by it.
#include "mpi/shim/blocking.hpp"
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"

namespace nearfield::mpi {

namespace {

template <class Function, class... Arguments>
int noted(const char* name, Function make, Arguments... arguments) {
  const HostCall blocks(host_calls(name));
  const int code = make(arguments...);
  if (code == MPI_SUCCESS) open_windows.fetch_add(1, std::memory_order_relaxed);
  return code;
}

constexpr const char* no_large_form =
    "this MPI library has no large-count form and the displacement unit exceeds an int";

}  // namespace

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return noted("MPI_Win_create", host.Win_create, base, size, unit, info, comm, win);
}
int Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (host.Win_create_c) return noted("MPI_Win_create_c", host.Win_create_c, base, size, unit, info, comm, win);
  if (unit > INT_MAX) return raise(comm, "MPI_Win_create_c", no_large_form);
  return Win_create(base, size, int(unit), info, comm, win);
}
int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return noted("MPI_Win_allocate", host.Win_allocate, size, unit, info, comm, base, win);
}
int Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  if (host.Win_allocate_c) return noted("MPI_Win_allocate_c", host.Win_allocate_c, size, unit, info, comm, base, win);
  if (unit > INT_MAX) return raise(comm, "MPI_Win_allocate_c", no_large_form);
  return Win_allocate(size, int(unit), info, comm, base, win);
}
int Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return noted("MPI_Win_allocate_shared", host.Win_allocate_shared, size, unit, info, comm, base, win);
}
int Win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  if (host.Win_allocate_shared_c)
    return noted("MPI_Win_allocate_shared_c", host.Win_allocate_shared_c, size, unit, info, comm, base, win);
  if (unit > INT_MAX) return raise(comm, "MPI_Win_allocate_shared_c", no_large_form);
  return Win_allocate_shared(size, int(unit), info, comm, base, win);
}
int Win_free(MPI_Win* win) {
  const HostCall blocks(host_calls("MPI_Win_free"));
  const int code = host.Win_free(win);
  if (code == MPI_SUCCESS) open_windows.fetch_sub(1, std::memory_order_relaxed);
  return code;
}
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return noted("MPI_Win_create_dynamic", host.Win_create_dynamic, info, comm, win);
}

}  // namespace nearfield::mpi
