// The functions that the shim offers in place of the host's. Each may be called like its MPI function: on any thread,
// also with wrong arguments, before MPI_Init and after MPI_Finalize. A call that it cannot serve goes to the host.
// Exceptions of a function become errors of MPI (Entry in entry.hpp).
#pragma once
#include <cstdint>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Reports `text` and raises an error through the communicator's error handler.
int raise(MPI_Comm comm, const char* function, const char* text, int code = MPI_ERR_OTHER);

// ENTRIES(which, macro)(...) expands to macro(...) in files that define HERE_<which> as a comma, elsewhere to nothing.
#define SECOND(first, second, ...) second
#define EXPANDED(...) SECOND(__VA_ARGS__, )
#define NOTHING(...)
#define ENTRIES(which, macro) EXPANDED(HERE_##which macro, NOTHING)

// Functions that are written by hand.
#define HERE_by_hand ,
#define DECLARED(name, result, parameters) result name parameters;
#define OURS(name, result, parameters, kind, which, ...) ENTRIES(which, DECLARED)(name, result, parameters)
#include "mpi/functions.def"
#undef DECLARED
#undef HERE_by_hand
// Functions of MPICH whose names begin with MPIX_.
int X_Request_is_complete(MPI_Request request);
int Comm_failure_ack(MPI_Comm comm);
int Comm_revoke(MPI_Comm comm);
// MPII_Win_get_attr of the MPICH family, which their Fortran bindings call. `kind`: the kind of object that `value`
// points to. Fortran's keys are C's plus one; its values are numbers, C's are pointers to them.
int I_Win_get_attr(MPI_Win win, int key, void* value, int* flag, int kind);
// The same for Open MPI's bindings, which read the attribute from the host's window.
void mend_fortran_attribute(int win, int key, std::intptr_t* value);

}  // namespace nearfield::mpi
