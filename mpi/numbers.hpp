// The number of each function that libnearfield.so exports, equal in all libraries of a build and all processes of a
// job. Slots and the shim's tables are indexed by it, and it tells other processes which function a rank calls.
#pragma once
#include <cstdint>

namespace nearfield::mpi {

enum class Function : std::uint16_t {
  none,
#define EACH(symbol, name) name,
#include "mpi/functions.def"
  count
};

// Functions that Nearfield has a version of have the numbers from 1 to this one.
inline constexpr std::uint16_t own_functions = 0
#define OURS(...) +1
#include "mpi/functions.def"
    ;

// "MPI_Send", by number.
inline constexpr const char* function_names[] = {
    "MPI",
#define EACH(symbol, name) #symbol,
#include "mpi/functions.def"
};
constexpr const char* name_of(Function number) { return function_names[unsigned(number)]; }

// A hash of all names in their order, by which libraries of different builds find out that their numbers differ.
inline constexpr std::uint64_t numbering = [] {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char* name : function_names)
    for (const char* at = name;; ++at) {
      hash = (hash ^ std::uint8_t(*at)) * 0x100000001b3u;
      if (!*at) break;
    }
  return hash;
}();

}  // namespace nearfield::mpi
