#include "mpi/shim/process/narrowing.hpp"

#include "mpi/shim/collectives/vector/neighbors.hpp"
#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {

ArrayLengths array_lengths(const FunctionTraits& traits, unsigned of_sends, MPI_Comm comm, int root, const void* send) {
  if (traits.neighbors) {
    Communicator* const c = communicator_of(comm);
    const Neighborhood* const neighbors = c ? neighborhood_of(*c) : nullptr;
    if (!neighbors) return {};
    return {neighbors->targets.size(), neighbors->sources.size(), of_sends};
  }
  int inter = 0, rank = 0, partners = 0;
  host.Comm_test_inter(comm, &inter);
  host.Comm_rank(comm, &rank);
  // In an intercommunicator lists of a reduction have an entry per rank of the local group, others per remote rank.
  const auto size_of = inter && traits.operation < 0 ? host.Comm_remote_size : host.Comm_size;
  if (size_of(comm, &partners) != MPI_SUCCESS) return {};
  const bool has_lists = traits.root < 0 || (inter ? root == MPI_ROOT : root == rank);
  const std::size_t length = has_lists ? std::size_t(partners) : 0;
  return {send == MPI_IN_PLACE ? 0 : length, length, of_sends};
}

}  // namespace nearfield::mpi
