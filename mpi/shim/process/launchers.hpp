// A pause before a job is aborted: launchers drop output that they have not forwarded by then, such as the reason.
#pragma once
#include <unistd.h>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

inline void let_launchers_forward() { usleep(100'000); }

// Returns whether an error raised on a communicator or a window ends the job; `get`: returns its error handler. pre:
// the handle is valid.
template <class Handle, class Get>
bool aborts(Handle handle, Get get) {
  MPI_Errhandler errhandler{};
  if (get(handle, &errhandler) != MPI_SUCCESS) return false;
  bool ends = errhandler == MPI_ERRORS_ARE_FATAL;
#if MPI_VERSION >= 4
  ends |= errhandler == MPI_ERRORS_ABORT;
#endif
  host.Errhandler_free(&errhandler);
  return ends;
}

template <class Handle, class Get>
void let_launchers_forward(Handle handle, Get get) {
  if (aborts(handle, get)) let_launchers_forward();
}

}  // namespace nearfield::mpi
