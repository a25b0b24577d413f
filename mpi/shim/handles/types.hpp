// From the host's predefined datatypes and operators to the engine's. Any thread may look, once bind_types() has
// returned. A type's size is equal on all ranks, so what is carried follows from it (law 1 of docs/architecture.md).
#pragma once
#include <cstddef>
#include <optional>

#include "engine/reducing/fold.hpp"
#include "mpi/shim/host.hpp"

namespace nearfield::mpi {

struct TypeInfo {
  reducing::Type type;   // none: not reducible here
  std::uint32_t bytes;   // size of the type signature
  bool dense;            // an array of them has no gaps and needs no packing
  bool fortran_integer;  // logical operators are not defined on it; what a host makes of them is its business
};

// Builds the tables; call once, before any look-up.
void bind_types();

// nullptr for everything that is not a predefined type that we know.
const TypeInfo* find_type(MPI_Datatype type);

std::optional<reducing::Op> find_op(MPI_Op op);

}  // namespace nearfield::mpi
