#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi {

Admission Nonblocking::admit(MPI_Comm comm, const Reduction* reduction) const {
  if (!request) return {};
  if (!goes_on_in_host()) return {nullptr, Reason::off};
  Communicator* const known = communicator_of(comm);
  if (known && known->young && !revoked(comm)) [[unlikely]]
    if (by_host_for_youth(*known, reduction)) return {nullptr, Reason::young};
  if (Communicator* const state = created(comm)) [[likely]]
    return {state, Reason::communicator};
  const Communicator* const state = communicator_of(comm);
  return {nullptr, state && !state->enabled ? Reason::off : Reason::communicator};
}

int Nonblocking::at_host(Collective collective, Reason reason) const {
  note_host_request();
  return to_host(collective, reason, [this] { return host_call(request); });
}

Admission Persistent::admit(MPI_Comm comm, const Reduction*) const {
  grow_up(comm);
  const Admission admitted = request ? mpi::admit(comm) : Admission{};
  if (!goes_on_in_host()) return {nullptr, Reason::off};
  return admitted.communicator && admitted.communicator->team ? admitted : Admission{nullptr, admitted.reason};
}

int Persistent::at_host(Collective collective, Reason reason) const {
  const int code = to_host(collective, reason, host_call);
  if (code == MPI_SUCCESS && request) note_persistent(*request);
  return code;
}

}  // namespace nearfield::mpi
