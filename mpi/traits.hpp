// Facts about each MPI function, from the standard and mpi/functions.toml: its kind, whether it may block in the host,
// and the position of each argument by its meaning (-1: it has no such argument). C types do not tell a count from a
// tag, so code that reads arguments looks here: the hang report (mpi/shim/calls), the recording (mpi/shim/recording),
// and calls to the host (mpi/shim/process/at_host.hpp).
#pragma once
#include <cstdint>

#include "mpi/numbers.hpp"

namespace nearfield::mpi {

// The kind under which a recording counts a function. Calls of kind `tools` are not recorded.
enum class FunctionKind : std::uint8_t {
  collective,
  neighbors,
  message,
  completion,
  window,
  communicator,
  file,
  other,
  tools
};

using Position = std::int8_t;

// The arguments that describe what a call sends, or receives. In reductions both sides have the same count and type.
struct SideRoles {
  Position buffer = -1, count = -1, type = -1, partner = -1, tag = -1;
  bool lists = false;      // a count for each rank or neighbour
  bool typed = false;      // a type for each, too
  bool root_only = false;  // only the root's arguments count
};

struct FunctionTraits {
  FunctionKind kind = FunctionKind::other;
  bool moves_data = false;    // the host may read or write a buffer of the program while the call blocks
  bool meets_nobody = false;  // it may block in the host, but does not wait for another rank
  Position communicator = -1, window = -1, file = -1;
  Position root = -1, operation = -1;
  Position requests = -1, request_count = -1;  // requests that it completes, starts or frees; without a count: one
  SideRoles sends = {}, receives = {};
  bool neighbors = false;  // lists have an entry for each neighbour, not for each rank
  bool large = false;      // a large-count form: counts are MPI_Count

  // The side that describes what the calling rank contributes; in a scatter, or if it only receives, what it gets.
  constexpr const SideRoles& own_side() const { return sends.type < 0 || sends.root_only ? receives : sends; }
  constexpr const SideRoles& other_side() const { return &own_side() == &sends ? receives : sends; }
  constexpr Position partner() const { return sends.partner >= 0 ? sends.partner : receives.partner; }
};

inline constexpr FunctionTraits function_traits[] = {
    {},
#define BLOCKING(name, result, parameters, function_kind, ...) \
  {.kind = FunctionKind::function_kind __VA_OPT__(, ) __VA_ARGS__},
#define OURS(name, result, parameters, function_kind, entries, function, ...) \
  BLOCKING(name, result, parameters, function_kind __VA_OPT__(, ) __VA_ARGS__)
#define EXTENSION(...) BLOCKING(__VA_ARGS__)
#include "mpi/functions.def"
};
constexpr const FunctionTraits& traits_of(Function number) { return function_traits[unsigned(number)]; }
// Returns the int form of a large-count function, which precedes it in the table.
constexpr Function int_form(Function large) { return static_cast<Function>(unsigned(large) - 1); }

}  // namespace nearfield::mpi
