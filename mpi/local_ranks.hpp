// This file uses nothing of the C++ library, since libnearfield.so does not link it.
#pragma once
#include <cstdlib>

namespace nearfield::mpi {

// Returns how many ranks of the job run on this node, by the variables of mpiexec of MPICH, Intel MPI and Open MPI; 0:
// the launcher does not say.
inline int local_ranks() {
  for (const char* const variable : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    if (const char* const text = std::getenv(variable); text && std::atoi(text) > 0) return std::atoi(text);
  return 0;
}

}  // namespace nearfield::mpi
