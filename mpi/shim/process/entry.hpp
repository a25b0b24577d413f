// What the program calls: a function of the shim, noted for hang reports. No exception leaves it, since the frames
// above are C's. mpi/functions.def says which entries are compiled where (mpi/shim/entries).
#pragma once
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

using Address = void (*)();
template <Function number>
Address entry();

// The most frequent message functions handle their exceptions themselves.
constexpr bool never_throws(Function number) {
  return number == Function::Send || number == Function::Recv || number == Function::Isend ||
         number == Function::Irecv || number == Function::Sendrecv;
}

template <Function number, auto function, class Type = decltype(function)>
struct Entry;
template <Function number, auto function, class Result, class... Arguments>
struct Entry<number, function, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    if constexpr (std::is_same_v<Result, int>) {
      const calls::ArgumentWords words(arguments...);
      const calls::CallScope scope(number, __builtin_return_address(0), NEARFIELD_RETURN_SLOT, words.all);
      if constexpr (never_throws(number)) return function(arguments...);
      try {
        return function(arguments...);
      } catch (const OutOfMemory&) {
        return raise(host.world, name_of(number), "out of memory", MPI_ERR_NO_MEM);
      } catch (const team::Broken& broken) {
        return raise(host.world, name_of(number), broken);
      }
    } else {
      return function(arguments...);
    }
  }
};

// Of a row of functions.def. Templates are instantiated for its parameters. Start-up asks for all addresses, so what
// tells them lies together: beside the calls it would touch two hundred KiB of code.
#define DEFINED(name, result, parameters, function)                                                             \
  template <>                                                                                                   \
  [[gnu::section(".text.startup")]] Address entry<Function::name>() {                                           \
    return reinterpret_cast<Address>(&Entry<Function::name, static_cast<result(*) parameters> function>::call); \
  }
#define ENTRY(name, result, parameters, kind, which, function, ...) \
  ENTRIES(which, DEFINED)(name, result, parameters, function)

}  // namespace nearfield::mpi
