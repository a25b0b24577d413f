// Extracts a call's communicator, partner and bytes by the roles of its arguments (mpi/roles.hpp). The bytes are those
// that the rank sends (in Scatter and Scatterv: receives), of one block if the operation has one for each rank, and of
// a receive the size of its buffer. Lists of neighbourhood collectives count as 0.
#pragma once
#include <cstdint>

#include "mpi/roles.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi::recording {

// `words`: the arguments of the call, one each (calls::ArgumentWords).
MPI_Comm communicator_in(const Roles& r, const std::uint64_t* words);
int partner_in(const Roles& r, const std::uint64_t* words);
std::uint64_t bytes_in(const Roles& r, const std::uint64_t* words);

}  // namespace nearfield::mpi::recording
