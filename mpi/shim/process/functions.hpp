// The functions that the shim offers in place of the host's, and large-count calls to hosts that lack them. Each
// accepts all arguments of its MPI function, also before MPI_Init and after MPI_Finalize, wrong ones, and on any
// thread: calls that we cannot serve go to the host. Exceptions become errors of MPI (Entry in shim.cpp).
#pragma once
#include <climits>
#include <type_traits>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Reports `text` and raises an error through the communicator's error handler.
int raise(MPI_Comm comm, const char* function, const char* text, int code = MPI_ERR_OTHER);

// Converts an argument for the int form of a function: counts are narrowed, others are unchanged.
template <class T>
auto narrow(T value, bool& fits) {
  if constexpr (std::is_same_v<T, MPI_Count>) {
    if (value > INT_MAX || value < INT_MIN) fits = false;
    return int(value);
  } else {
    return value;
  }
}

// Calls a function that a host of an older standard may lack.
template <class Function, class... Arguments>
int call_if_present(Function function, const char* name, MPI_Comm comm, Arguments... arguments) {
  if (function) return function(arguments...);
  return raise(comm, name, "this MPI library does not have it, and the communicator's messages are the library's");
}

// Calls the host's large-count form, or without it the int form if the counts fit.
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
// MPIX_ functions of MPICH.
int X_Request_is_complete(MPI_Request request);
int Comm_revoke(MPI_Comm comm);
// MPII_Win_get_attr of the MPICH family, which their Fortran bindings call. `kind`: the kind of object that `value`
// points to. Fortran's keys are C's plus one; its values are numbers, C's are pointers to them.
int I_Win_get_attr(MPI_Win win, int key, void* value, int* flag, int kind);
// The same for Open MPI's bindings, which read the attribute from the host's window.
void mend_fortran_attribute(int win, int key, std::intptr_t* value);

}  // namespace nearfield::mpi
