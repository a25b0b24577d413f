// MPI's tools interface (MPI_T_) with variables of Nearfield's beside the host's, under indices of their own
// (appended.hpp) and handles of their own (handles.hpp); sessions, enumerations and events are the host's. All of it
// may be called without MPI_Init, from any thread. Errors are codes: there is no communicator to raise them on.
#pragma once
#include <new>
#include <string_view>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/tools/appended.hpp"

namespace nearfield::mpi::tools {

// Control variables, performance variables and categories.
Appended& controls();
Appended& performances();
Appended& categories();

// Calls the host's function, which it may lack.
template <class... Types, class... Arguments>
int at_host(int (*function)(Types...), Arguments... arguments) {
  return function ? function(arguments...) : MPI_ERR_UNSUPPORTED_OPERATION;
}

bool initialized();

// Must come before `indices` are used; an error where the interface is not initialised, which not every build of a host
// looks at.
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

// What is wrong with a handle of ours that has been freed.
inline int no_handle() { return initialized() ? MPI_T_ERR_INVALID_HANDLE : MPI_T_ERR_NOT_INITIALIZED; }

// MPI_T_..._get_num.
int number(Appended& indices, int (*get_num)(int*), int* result);

// Runs the body of a function; its code.
template <class Body>
int answer(Body body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    return MPI_T_ERR_MEMORY;
  }
}

// As MPI returns strings: at most *length - 1 characters and a zero; *length becomes the length of all of it, with the
// zero. Without `length` nothing; without a buffer, or *length of 0, that length alone.
void give_text(std::string_view text, char* buffer, int* length);

// What a caller need not ask for.
template <class T, class Value>
void give(T* to, Value value) {
  if (to) *to = value;
}

// The last MPI_T_finalize.
void forget_handles_of_controls();
void forget_handles_of_performances();

}  // namespace nearfield::mpi::tools
