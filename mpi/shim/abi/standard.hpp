// Any host with the ABI of the MPI standard (MPI 5.0): handles are pointers, predefined ones small numbers.
#pragma once
#include <mpi.h>

#include <optional>

#include "mpi/shim/abi/pointers.hpp"

namespace nearfield::mpi::abi {

inline constexpr const char* handle_functions[] = {"PMPI_Request_toint", "PMPI_Request_fromint", "PMPI_Message_toint",
                                                   "PMPI_Message_fromint"};
struct FortranPart {
  static constexpr int bytes = 0;
  void store(int /*offset*/, int /*number*/) {}
};

inline constexpr bool compares_lengths = true;
inline constexpr bool checks_aliases = true;
inline constexpr bool testall_keeps_failed = true;

#ifdef MPIX_ERR_REVOKED
inline constexpr int err_revoked = MPIX_ERR_REVOKED, err_proc_failed = MPIX_ERR_PROC_FAILED;
#else
inline constexpr int err_revoked = MPI_ERR_OTHER, err_proc_failed = MPI_ERR_OTHER;
#endif
inline constexpr bool always_fault_tolerant = false;

inline std::optional<MPI_Datatype> float16() { return std::nullopt; }
inline int* unweighted(void* /*library*/) { return MPI_UNWEIGHTED; }

}  // namespace nearfield::mpi::abi
