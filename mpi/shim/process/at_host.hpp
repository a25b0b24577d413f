// Calls the host's functions by their numbers, with the arguments that the program has given. If the host lacks a
// function, the call raises an error. If it only lacks the large-count form, the int form is called with counts and
// displacements narrowed to int; a value that does not fit raises an error.
#pragma once
#include <tuple>
#include <type_traits>

#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/narrowing.hpp"

namespace nearfield::mpi {

// The member of the table `Host` that holds the function with that number.
template <Function number>
struct HostMember;
#define MEMBER(name, lacks)                    \
  template <>                                  \
  struct HostMember<Function::name> {          \
    static constexpr auto at = &Host::name;    \
    static constexpr bool may_be_null = lacks; \
  };
#define OURS(name, ...) MEMBER(name, false)
#define OPTIONAL(name, ...) MEMBER(name, true)
#define BLOCKING(name, ...) MEMBER(name, true)
#define HANDLE(...)
#include "mpi/functions.def"
#undef MEMBER

// Returns MPI_ERR_UNSUPPORTED_OPERATION, and raises it on MPI_COMM_WORLD while MPI is running.
int lacks(Function function);
// Raise an error for a count or displacement that does not fit an int, on that communicator, window or file.
int raise_too_large(Function function, MPI_Comm comm);
int raise_too_large_on_window(Function function, MPI_Win win);
int raise_too_large_on_file(Function function, MPI_File file);

// Calls the int form of a large-count function.
template <Function number, class... Narrow, class... Arguments>
int narrowed(int (*plain)(Narrow...), Arguments... arguments) {
  constexpr FunctionTraits traits = traits_of(number);
  const std::tuple<Arguments...> given(arguments...);
  constexpr auto get = [](const auto& all, auto position, auto otherwise) {
    if constexpr (position() >= 0) return std::get<std::size_t(position())>(all);
    else return otherwise;
  };
  [[maybe_unused]] const auto comm = get(given, std::integral_constant<int, traits.communicator>(), host.world);
  ArrayLengths lengths;
  if constexpr (traits.sends.lists || traits.receives.lists) {
    unsigned of_sends = 0;
    int position = 0;
    ((of_sends += position++ < traits.receives.buffer && Argument<Narrow, Arguments>::is_array), ...);
    const auto root = get(given, std::integral_constant<int, traits.root>(), 0);
    const auto send = get(given, std::integral_constant<int, traits.sends.buffer>(), nullptr);
    lengths = array_lengths(traits, of_sends, comm, root, send);
  }
  bool fits = true;
  const std::tuple<Argument<Narrow, Arguments>...> all{Argument<Narrow, Arguments>(arguments, lengths, fits)...};
  if (fits) return std::apply([&](const auto&... each) { return plain(each.get()...); }, all);
  if constexpr (traits.window >= 0) return raise_too_large_on_window(number, std::get<traits.window>(given));
  else if constexpr (traits.file >= 0) return raise_too_large_on_file(number, std::get<traits.file>(given));
  else return raise_too_large(number, comm);
}

// Raises the error for a function that the host lacks.
template <Function number, class... Arguments>
[[gnu::noinline, gnu::cold]] int without(Arguments... arguments) {
  constexpr FunctionTraits traits = traits_of(number);
  if constexpr (traits.large) {
    using Last = std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>;
    // Not for lists of non-blocking calls: the narrowed arrays would have to exist until the request is complete.
    constexpr bool lists = traits.sends.lists || traits.receives.lists;
    if constexpr (!lists || traits.operation >= 0 || !std::is_same_v<Last, MPI_Request*>) {
      constexpr auto plain = HostMember<int_form(number)>::at;
      if (host.*plain) return narrowed<number>(host.*plain, arguments...);
    }
  }
  return lacks(number);
}

template <Function number, class... Arguments>
[[gnu::always_inline]] inline int at_host(Arguments... arguments) {
  constexpr auto function = HostMember<number>::at;
  if constexpr (HostMember<number>::may_be_null)
    if (!(host.*function)) [[unlikely]]
      return without<number>(arguments...);
  return (host.*function)(arguments...);
}

}  // namespace nearfield::mpi
