// The functions that the shim offers in place of the host's, and large-count calls to hosts that lack them. Each takes
// what its MPI function takes, also before MPI_Init and after MPI_Finalize, with wrong arguments, and on any thread:
// what cannot be served goes to the host. What a function throws ends as an error of MPI (Entry in shim.cpp).
#pragma once
#include <climits>
#include <type_traits>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Reports `text` and raises an error through the communicator's error handler.
int raise(MPI_Comm comm, const char* function, const char* text, int code = MPI_ERR_OTHER);

// An argument for the int form of a function: counts are narrowed, everything else passes.
template <class T>
auto narrow(T value, bool& fits) {
  if constexpr (std::is_same_v<T, MPI_Count>) {
    if (value > INT_MAX || value < INT_MIN) fits = false;
    return int(value);
  } else {
    return value;
  }
}

// A function that a host of an older standard may lack.
template <class Function, class... Arguments>
int call_if_present(Function function, const char* name, MPI_Comm comm, Arguments... arguments) {
  if (function) return function(arguments...);
  return raise(comm, name, "this MPI library does not have it, and the communicator's messages are the library's");
}

// The host's large-count form; where it has none, its int form, as long as the counts fit.
template <class Large, class Plain, class... Arguments>
int large(Large large_form, Plain plain_form, const char* function, MPI_Comm comm, Arguments... arguments) {
  if (large_form) return large_form(arguments...);
  bool fits = true;
  ((void)narrow(arguments, fits), ...);
  if (!fits) return raise(comm, function, "this MPI library has no large-count form and the count exceeds an int");
  return call_if_present(plain_form, function, comm, narrow(arguments, fits)...);
}

#define FUNCTION(name, types) int name types;
#define OF_HANDLES(result, name, types) result name types;
#include "mpi/each_function.def"
// MPIX_ functions, of MPICH.
int X_Request_is_complete(MPI_Request request);
int Comm_revoke(MPI_Comm comm);
// MPII_Win_get_attr of the MPICH family, which their Fortran bindings call. `kind`: of what `value` points to. Keys of
// Fortran's are C's plus one there; their values are numbers, where C's are pointers to them.
int I_Win_get_attr(MPI_Win win, int key, void* value, int* flag, int kind);
// The same for Open MPI's, which read it where we have nothing to put ours.
void mend_fortran_attribute(int win, int key, std::intptr_t* value);

}  // namespace nearfield::mpi
