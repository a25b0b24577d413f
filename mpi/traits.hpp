// What the standard and mpi/functions.toml say of each MPI function beside its parameters: what it is about, how it
// behaves in the host, and what each argument is, by its position (-1: it has none such). Whoever reads arguments that
// no type tells apart asks here: the hang report (mpi/shim/calls), the recording (mpi/shim/recording), and calls to the
// host (mpi/shim/process/at_host.hpp).
#pragma once
#include <cstdint>

#include "mpi/numbers.hpp"

namespace nearfield::mpi {

// What a recording counts it as; calls of tools are not recorded.
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

// What a call sends or receives; of a probe partner and tag alone. Reductions have one count and type for both sides.
struct SideRoles {
  Position buffer = -1, count = -1, type = -1, partner = -1, tag = -1;
  bool lists = false;      // a count for each rank or neighbour
  bool typed = false;      // a type for each, too
  bool root_only = false;  // means something at the root alone
};

struct FunctionTraits {
  FunctionKind kind = FunctionKind::other;
  bool moves_data = false;    // while it may block in the host, by a buffer of the program's
  bool meets_nobody = false;  // it may block in the host, but awaits no other rank there
  Position communicator = -1, window = -1, file = -1;
  Position root = -1, operation = -1;
  Position requests = -1, request_count = -1;  // that the call completes, starts or frees; no count: one
  SideRoles sends = {}, receives = {};
  bool neighbors = false;  // lists have an entry for each neighbour, not for each rank
  bool large = false;      // a large-count form: counts are MPI_Count

  // What the calling rank contributes; of a scatter, and of what only receives, what it gets.
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
// Of a large-count form, which is behind it in the table.
constexpr Function int_form(Function large) { return static_cast<Function>(unsigned(large) - 1); }

}  // namespace nearfield::mpi
