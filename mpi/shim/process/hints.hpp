// Hints that a program gives in info objects.
#pragma once
#include <string>

#include "engine/memory/placement.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Returns a hint of an info object; empty: it is not set, " ": it has no text.
std::string hint(MPI_Info info, const char* key);

// Returns the wish in the hint `nearfield_memory`; none: it is not set, or blank, or `info` is MPI_INFO_NULL.
Result<std::optional<memory::Wish>> placement_hint(MPI_Info info);

// Returns the alignment of memory: a page, or more by the hint `mpi_minimum_memory_alignment`.
std::size_t alignment_hint(MPI_Info info);

}  // namespace nearfield::mpi
