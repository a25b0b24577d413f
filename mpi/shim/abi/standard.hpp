// Any host with the ABI of the MPI standard (MPI 5.0): handles are pointers, predefined ones small numbers.
#pragma once
#include <mpi.h>

#include <optional>

#include "mpi/shim/abi/pointers.hpp"
#include "mpi/shim/abi/toint.hpp"

namespace nearfield::mpi::abi {

inline constexpr bool knows_fortran_keys = false;
inline std::optional<MPI_Datatype> float16() { return std::nullopt; }
inline int* unweighted(void* (* /*find*/)(const char*)) { return MPI_UNWEIGHTED; }

}  // namespace nearfield::mpi::abi
