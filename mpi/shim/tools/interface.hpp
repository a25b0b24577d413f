// MPI's tools interface (MPI_T_) with Nearfield's variables in addition to the host's, under indices (appended.hpp) and
// handles (handles.hpp) of their own; sessions, enumerations and events are the host's. All functions may be called
// without MPI_Init, from any thread. Errors are returned, since there is no communicator to raise them on.
#pragma once
#include <new>
#include <string_view>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/tools/appended.hpp"

namespace nearfield::mpi::tools {

Appended& controls();
Appended& performances();
Appended& categories();

// Calls a function that the host may lack.
template <class... Types, class... Arguments>
int at_host(int (*function)(Types...), Arguments... arguments) {
  return function ? function(arguments...) : MPI_ERR_UNSUPPORTED_OPERATION;
}

bool initialized();

// Must be called before `indices` are used. Returns an error if the interface is not initialised, since some builds of
// hosts do not check that.
inline int know(Appended& indices, int (*get_num)(int*)) {
  if (!initialized()) return MPI_T_ERR_NOT_INITIALIZED;
  if (indices.fixed()) return MPI_SUCCESS;
  int hosts = 0;
  const int code = at_host(get_num, &hosts);
  if (code == MPI_SUCCESS) indices.fix(hosts);
  return code;
}
inline int know_controls() { return know(controls(), host.T_cvar_get_num); }
inline int know_performances() { return know(performances(), host.T_pvar_get_num); }
inline int know_categories() { return know(categories(), host.T_category_get_num); }

// Returns the error for a freed handle of ours.
inline int no_handle() { return initialized() ? MPI_T_ERR_INVALID_HANDLE : MPI_T_ERR_NOT_INITIALIZED; }

// Serves MPI_T_..._get_num.
int number(Appended& indices, int (*get_num)(int*), int* result);

// Runs the body of a function and returns its code.
template <class Body>
int answer(Body body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    return MPI_T_ERR_MEMORY;
  }
}

// Returns a string as MPI does: at most *length - 1 characters and a zero; *length becomes the length of the whole
// string with the zero. Without `length` it does nothing; without a buffer, or if *length is 0, it returns the length
// alone.
void give_text(std::string_view text, char* buffer, int* length);

// Returns a value that callers may omit.
template <class T, class Value>
void give(T* to, Value value) {
  if (to) *to = value;
}

// Called by the last MPI_T_finalize.
void forget_handles_of_controls();
void forget_handles_of_performances();

}  // namespace nearfield::mpi::tools
