// Hints that a program gives in info objects.
#pragma once
#include <string>

#include "engine/memory/placement.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// One hint of an info object; empty when it is not there, " " when it has no text.
std::string hint(MPI_Info info, const char* key);

// Where memory should lie by the hint `nearfield_memory`; none where it is not given, or blank. MPI_INFO_NULL is no
// hint.
Result<std::optional<memory::Wish>> placement_hint(MPI_Info info);

// At what multiple of bytes memory should begin: a page's, or more by the hint `mpi_minimum_memory_alignment`.
std::size_t alignment_hint(MPI_Info info);

}  // namespace nearfield::mpi
