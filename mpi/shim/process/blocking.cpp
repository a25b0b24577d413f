// Entries for the host's functions that may block. A large-count form that the host lacks becomes its int form with
// narrowed arguments. Programs use any exported function, so one that the host lacks altogether raises an error.
#include "mpi/shim/process/blocking.hpp"

#include <tuple>

#include "mpi/shim/calls/calling.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/process/narrowing.hpp"

namespace nearfield::mpi {
namespace {

template <auto member, Function number, class Type>
struct Blocking;
template <auto member, Function number, class... Arguments>
struct Blocking<member, number, int (*)(Arguments...)> {
  static inline HostCalls record;

  static int call(Arguments... arguments) {
    const calls::ArgumentWords words(arguments...);
    const calls::Calling calling(number, __builtin_return_address(0), NEARFIELD_RETURN_SLOT, words.all);
    const HostCall blocks(record);
    return (host.*member)(arguments...);
  }
  static int lack(Arguments...) {
    if (!process()) return MPI_ERR_UNSUPPORTED_OPERATION;  // there may be no communicator to raise it on
    return raise(host.world, record.name, "this MPI library does not have it", MPI_ERR_UNSUPPORTED_OPERATION);
  }
};

template <auto member, auto plain, Function number, class Large, class Plain>
struct LargeForm;
template <auto member, auto plain, Function number, class... Arguments, class... Narrow>
struct LargeForm<member, plain, number, int (*)(Arguments...), int (*)(Narrow...)> {
  using Record = Blocking<member, number, int (*)(Arguments...)>;
  static int call(Arguments... arguments) {
    const calls::ArgumentWords words(arguments...);
    const calls::Calling calling(number, __builtin_return_address(0), NEARFIELD_RETURN_SLOT, words.all);
    const std::tuple<Arguments...> all(arguments...);
    constexpr bool of_file = std::is_same_v<std::tuple_element_t<0, decltype(all)>, const MPI_File>;
    ArrayLengths lengths;
    // The communicator comes last.
    if constexpr (!of_file) lengths.receives = partners_in(std::get<sizeof...(Arguments) - 1>(all));
    const HostCall blocks(Record::record);
    const auto otherwise = [&]() -> int {
      if constexpr (!of_file) return raise(std::get<sizeof...(Arguments) - 1>(all), Record::record.name, too_large);
      log_line(LogLevel::error, "%s: %s", Record::record.name, too_large);
      if constexpr (of_file) host.File_call_errhandler(std::get<0>(all), MPI_ERR_OTHER);
      return MPI_ERR_OTHER;
    };
    return narrowed(host.*plain, lengths, otherwise, arguments...);
  }
};

template <auto member, Function number>
void* bound() {
  using Form = Blocking<member, number, std::remove_reference_t<decltype(host.*member)>>;
  enter(Form::record, function_names[unsigned(number)]);
  return reinterpret_cast<void*>(host.*member ? &Form::call : &Form::lack);
}

template <auto member, auto plain, Function number>
void* bound_large() {
  if (host.*member || !(host.*plain)) return bound<member, number>();
  using Form = LargeForm<member, plain, number, std::remove_reference_t<decltype(host.*member)>,
                         std::remove_reference_t<decltype(host.*plain)>>;
  enter(Form::Record::record, function_names[unsigned(number)]);
  return reinterpret_cast<void*>(&Form::call);
}

}  // namespace

void* blocking_function(Function number) {
  switch (number) {
#define F(function, types) \
  case Function::function: return bound<&Host::function, Function::function>();
#define L(function, types) \
  case Function::function##_c: return bound_large<&Host::function##_c, &Host::function, Function::function##_c>();
#include "mpi/shim/process/signatures.def"
#undef F
#undef L
    default: return nullptr;
  }
}

}  // namespace nearfield::mpi
