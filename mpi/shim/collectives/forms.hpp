// What the definitions of collectives (mpi/shim/definitions) call: the form of a call, with the host's function for it,
// goes to the class of its parameters (engine/classes.hpp, vector/classes.hpp). A class is a template over the
// operation with
//
//   int serve(const char* function, const When& when, arguments...)   the last argument is the communicator
//
// All are static: then a body that has one caller is inlined there, as the blocking int forms need.
//
// Large-count and overlapping forms, which are called least, share their code: they differ in the host's function
// alone.
#pragma once
#include "engine/base/function_ref.hpp"
#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

template <Function number, class Class, class... Arguments>
[[gnu::always_inline]] static inline int blocking(Arguments... arguments) {
  const auto host_call = [&]() -> int { return at_host<number>(arguments...); };
  if constexpr (traits_of(number).large)
    return Class::serve(name_of(number), Blocking{FunctionRef<int()>{host_call}}, arguments...);
  else return Class::serve(name_of(number), Blocking{host_call}, arguments...);
}

template <Function number, class Class, class... Arguments>
static int nonblocking(MPI_Request* request, Arguments... arguments) {
  const auto host_call = [=](MPI_Request* made) -> int { return at_host<number>(arguments..., made); };
  return Class::serve(name_of(number), Nonblocking{host_call, request}, arguments...);
}

template <Function number, class Class, class... Arguments>
static int persistent(MPI_Info info, MPI_Request* request, Arguments... arguments) {
  const auto host_call = [&]() -> int { return at_host<number>(arguments..., info, request); };
  return Class::serve(name_of(number), Persistent{host_call, request}, arguments...);
}

}  // namespace nearfield::mpi
