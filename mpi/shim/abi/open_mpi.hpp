// Open MPI: handles are pointers, predefined ones the addresses of data symbols. The shim must not refer to these by
// name, since the host may be loaded privately (mpi4py does): its macros are redirected to a look-up at run time.
#pragma once
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>

#include "mpi/shim/abi/pointers.hpp"

typedef struct ompi_instance_t* MPI_Session;  // NOLINT: as in mpi.h, which lacks it before Open MPI 5

namespace nearfield::mpi {
void* host_data(const char* symbol);  // returns the address of a data symbol; nullptr: none

template <std::size_t length>
struct SymbolName {
  consteval SymbolName(const char (&name)[length]) {  // NOLINT: from a literal
    for (std::size_t i = 0; i < length; ++i) text[i] = name[i];
  }
  char text[length];
};
// The same, looked up once, since looking up takes 0.3 us.
template <SymbolName name>
void* host_data() {
  static constinit std::atomic<void*> known = nullptr;  // constinit: needs no guard
  void* at = known.load(std::memory_order_relaxed);
  if (!at) [[unlikely]]
    known.store(at = host_data(name.text), std::memory_order_relaxed);
  return at;
}
}  // namespace nearfield::mpi
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(nearfield::mpi::host_data<#global>()))

namespace nearfield::mpi::abi {

inline constexpr const char* handle_functions[] = {"PMPI_Request_c2f", "PMPI_Request_f2c", "PMPI_Message_c2f",
                                                   "PMPI_Message_f2c"};
// The first bytes of each request of ours. Fortran's bindings read the request's number there, at an offset from the
// handle, which is the address of the object plus one.
struct FortranPart {
  static constexpr int bytes = 256;
  void store(int offset, int number) { std::memcpy(at + 1 + offset, &number, sizeof number); }
  unsigned char at[bytes] = {};
};

// Fortran's bindings read windows' attributes from the host's window, with the same keys as C.
inline constexpr bool fortran_reads_attributes = true;
inline constexpr bool remarks_on_kept_requests = false;
inline constexpr bool counts_what_is_cut = true;          // a status counts all bytes of a message that was truncated
inline constexpr bool refuses_to_free_in_epochs = false;  // MPI_Win_free, while an epoch is open
inline constexpr bool queries_raise = false;     // MPI_Request_get_status raises the error of a truncated message
inline constexpr int unbuffered_bytes = 4096;    // buffered sends of up to so many bytes need no attached buffer
inline constexpr bool compares_lengths = false;  // a bcast of fewer bytes than a rank expects is an error
inline constexpr bool judges_elements = false;
inline constexpr bool checks_aliases = false;
inline constexpr bool testall_keeps_failed = false;  // MPI_Testall completes no others once a request has failed

inline constexpr int err_revoked = MPI_ERR_REVOKED, err_proc_failed = MPI_ERR_PROC_FAILED,
                     err_proc_failed_pending = MPI_ERR_PROC_FAILED_PENDING;
inline constexpr bool always_fault_tolerant = true;

inline constexpr bool knows_fortran_keys = false;
inline std::optional<MPI_Datatype> float16() { return std::nullopt; }
inline int* unweighted(void* (* /*find*/)(const char*)) { return MPI_UNWEIGHTED; }

}  // namespace nearfield::mpi::abi
