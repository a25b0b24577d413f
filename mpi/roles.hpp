// What each argument of an MPI function is, by its position among its parameters (-1: it has none such). The rows come
// from the standard's machine-readable form (scripts/functions.py); whoever reads arguments that no type tells apart
// asks here: the hang report (mpi/shim/calls) and the recording (mpi/shim/recording).
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "mpi/numbers.hpp"

namespace nearfield::mpi {

using Position = std::int8_t;

// What a call sends or receives; of a probe partner and tag alone. Reductions have one count and type for both sides.
struct SideRoles {
  Position buffer = -1, count = -1, type = -1, partner = -1, tag = -1;
  bool lists = false;      // a count for each rank or neighbour
  bool typed = false;      // a type for each, too
  bool root_only = false;  // means something at the root alone
};

struct Roles {
  Position communicator = -1, window = -1;
  Position root = -1, operation = -1;
  Position requests = -1, request_count = -1;  // that the call completes, starts or frees; no count: one
  SideRoles sends = {}, receives = {};
  bool neighbors = false;  // lists have an entry for each neighbour, not for each rank
  bool large = false;      // counts are MPI_Count

  // What the calling rank contributes; of a scatter, and of what only receives, what it gets.
  constexpr const SideRoles& own_side() const { return sends.type < 0 || sends.root_only ? receives : sends; }
  constexpr const SideRoles& other_side() const { return &own_side() == &sends ? receives : sends; }
  constexpr Position partner() const { return sends.partner >= 0 ? sends.partner : receives.partner; }
};

inline constexpr Roles roles[] = {
    {},
#define ROLES(name, ...) {__VA_ARGS__},
#include "mpi/roles.def"
};

constexpr bool roles_are_numbered() {
  constexpr Function rows[] = {
      Function::none,
#define ROLES(name, ...) Function::name,
#include "mpi/roles.def"
  };
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (std::size_t(rows[i]) != i) return false;
  return std::size(rows) == std::size_t(Function::count);
}
static_assert(roles_are_numbered(), "mpi/roles.def is not in the order of mpi/each_slot.def: run scripts/functions.py");

}  // namespace nearfield::mpi
