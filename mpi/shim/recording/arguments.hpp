// Reads what a call says of itself, by the roles of its arguments (mpi/traits.hpp): its communicator, its partner, and
// the bytes that its rank gives (of Scatter and Scatterv: gets), of a block where the operation has one for each rank.
// Of receives that is the room they offer. Neighbours' lists count as nothing.
#pragma once
#include <cstdint>

#include "mpi/shim/process/host.hpp"
#include "mpi/traits.hpp"

namespace nearfield::mpi::recording {

// `words`: the arguments of the call, one each (calls::ArgumentWords).
MPI_Comm communicator_in(const FunctionTraits& r, const std::uint64_t* words);
int partner_in(const FunctionTraits& r, const std::uint64_t* words);
std::uint64_t bytes_in(const FunctionTraits& r, const std::uint64_t* words);

}  // namespace nearfield::mpi::recording
