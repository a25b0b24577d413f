// Reductions on a young communicator: the host serves its first calls, but where the order of operands shows in the
// result it only hands them round, and they are combined in the order of ranks, as teams do.
#pragma once
#include "mpi/shim/collectives/engine/form.hpp"

namespace nearfield::mpi {

// An allreduce, or a reduce to `root`; none: the host's own will do.
std::optional<int> combine_young(Collective collective, const char* function, const void* send, void* recv,
                                 const Reduction& reduction, int root, MPI_Comm comm);

template <Collective collective, class When>
int host_or_young(const char* function, const When& when, Reason reason, const void* send, void* recv,
                  const Reduction& reduction, int root, MPI_Comm comm) {
  if (reason == Reason::young && reduction.gathers)
    if (const auto code = combine_young(collective, function, send, recv, reduction, root, comm)) return *code;
  return when.at_host(collective, reason);
}

}  // namespace nearfield::mpi
