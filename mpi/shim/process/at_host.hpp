// The host's functions by their numbers, with the arguments that the program has given. What a host of an older
// standard lacks is an error; but of a large-count form it takes the int form, with narrowed counts and displacements,
// which is an error where one does not fit.
#pragma once
#include <tuple>
#include <type_traits>

#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/narrowing.hpp"

namespace nearfield::mpi {

// Its place in the host's table.
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

// MPI_ERR_UNSUPPORTED_OPERATION, raised where there is a communicator to raise it on.
int lacks(Function function);
// A count or displacement of a call on the communicator, window or file does not fit: an error through its handler.
int raise_too_large(Function function, MPI_Comm comm);
int raise_too_large_on_window(Function function, MPI_Win win);
int raise_too_large_on_file(Function function, MPI_File file);

// By the int form of a large-count function.
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
    // Narrowed lists would have to live as long as the request that the call leaves.
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
