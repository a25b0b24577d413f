// Definitions for both the MPICH family and hosts of the standard ABI.
#pragma once
#include <mpi.h>

namespace nearfield::mpi::abi {

// The host's functions that convert requests to integers and back, and messages to integers and back.
inline constexpr const char* handle_functions[] = {"PMPI_Request_toint", "PMPI_Request_fromint", "PMPI_Message_toint",
                                                   "PMPI_Message_fromint"};
// Fortran's bindings read nothing from a request, so it needs no bytes for them.
struct FortranPart {
  static constexpr int bytes = 0;
  void store(int /*offset*/, int /*number*/) {}
};

inline constexpr bool fortran_reads_attributes = false;
// True: MPI_Finalize of some versions reports persistent requests that the program has not freed.
inline constexpr bool remarks_on_kept_requests = true;
inline constexpr bool counts_what_is_cut = false;
inline constexpr bool refuses_to_free_in_epochs = true;
inline constexpr bool queries_raise = true;
inline constexpr int unbuffered_bytes = -1;
inline constexpr bool compares_lengths = true;
inline constexpr bool judges_elements = true;  // a message that ends within an element is an error if it has gaps
inline constexpr bool checks_aliases = true;
inline constexpr bool testall_keeps_failed = true;

#ifdef MPIX_ERR_REVOKED
inline constexpr int err_revoked = MPIX_ERR_REVOKED, err_proc_failed = MPIX_ERR_PROC_FAILED,
                     err_proc_failed_pending = MPIX_ERR_PROC_FAILED_PENDING;
#else
inline constexpr int err_revoked = MPI_ERR_OTHER, err_proc_failed = MPI_ERR_OTHER,
                     err_proc_failed_pending = MPI_ERR_OTHER;
#endif
inline constexpr bool always_fault_tolerant = false;  // only where the host can revoke

}  // namespace nearfield::mpi::abi
