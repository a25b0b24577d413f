// The functions that serve collectives (mpi/functions.def): the form of a call, with the host's function for it, goes
// to the class of its parameters (engine/classes.hpp, vector/classes.hpp). A class is a template over the operation
// with
//
//   int serve(const char* function, const When& when, arguments...)   the last argument is the communicator
//
// All forms call the host's function through a FunctionRef, so that a class is compiled once for each form.
#pragma once
#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

template <Function number, class Class, class... Arguments>
[[gnu::always_inline]] static inline int blocking(Arguments... arguments) {
  const auto host_call = [&]() -> int { return at_host<number>(arguments...); };
  return Class::serve(name_of(number), Blocking{host_call}, arguments...);
}

// Calls the function with the `last` last arguments moved to the front.
template <std::size_t last, class Called, class... Arguments>
[[gnu::always_inline]] static inline int last_first(const Called& function, Arguments... arguments) {
  constexpr std::size_t count = sizeof...(arguments);
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return function(std::get<(i + count - last) % count>(std::tie(arguments...))...);
  }(std::make_index_sequence<count>());
}

template <Function number, class Class, class... Arguments>
static int nonblocking(Arguments... all) {
  const auto serve = [](MPI_Request* request, auto... arguments) -> int {
    const auto host_call = [=](MPI_Request* made) -> int { return at_host<number>(arguments..., made); };
    return Class::serve(name_of(number), Nonblocking{host_call, request}, arguments...);
  };
  return last_first<1>(serve, all...);
}

template <Function number, class Class, class... Arguments>
static int persistent(Arguments... all) {
  const auto serve = [](MPI_Info info, MPI_Request* request, auto... arguments) -> int {
    const auto host_call = [&]() -> int { return at_host<number>(arguments..., info, request); };
    return Class::serve(name_of(number), Persistent{host_call, request}, arguments...);
  };
  return last_first<2>(serve, all...);
}

}  // namespace nearfield::mpi
