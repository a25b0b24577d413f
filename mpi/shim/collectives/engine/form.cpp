#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi {

int Nonblocking::at_host(Collective collective, Reason reason) const {
  note_host_request();
  return to_host(collective, reason, [this] { return host_call(request); });
}

int Persistent::at_host(Collective collective, Reason reason) const {
  const int code = to_host(collective, reason, host_call);
  if (code == MPI_SUCCESS && request) note_persistent(*request);
  return code;
}

}  // namespace nearfield::mpi
