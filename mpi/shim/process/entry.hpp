// An entry is what the program calls: it notes the call for hang reports and runs a function of the shim. No exception
// leaves it, since the frames above are C's. mpi/functions.def says which file of mpi/shim/entries compiles it.
#pragma once
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/calls/call_scope.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

using Address = void (*)();
template <Function number>
Address entry();

template <Function number, auto function, class Type = decltype(function)>
struct Entry;
template <Function number, auto function, class Result, class... Arguments>
struct Entry<number, function, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    if constexpr (std::is_same_v<Result, int>) {
      const calls::ArgumentWords words(arguments...);
      const calls::CallScope scope(number, __builtin_return_address(0), NEARFIELD_RETURN_SLOT, words.all);
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

// Defines the function that returns the address of an entry of functions.def. Start-up calls all of these, so they lie
// together in one section; scattered among the entries they would make it load two hundred KiB of code.
#define DEFINED(name, result, parameters, function)                                                             \
  template <>                                                                                                   \
  [[gnu::section(".text.startup")]] Address entry<Function::name>() {                                           \
    return reinterpret_cast<Address>(&Entry<Function::name, static_cast<result(*) parameters> function>::call); \
  }
#define ENTRY(name, result, parameters, kind, which, function, ...) \
  ENTRIES(which, DEFINED)(name, result, parameters, function)

}  // namespace nearfield::mpi
