// Reads facts of a call from its arguments, by their roles (mpi/traits.hpp): its communicator, its partner, and the
// number of bytes that its rank gives (in Scatter and Scatterv: gets). If the operation has one count for all ranks,
// these are the bytes of one block. For receives they are the length of the buffer, for lists of neighbours 0.
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
