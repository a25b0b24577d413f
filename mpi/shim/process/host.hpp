// The host MPI: its functions, called only through this table of their addresses, and its predefined objects. The table
// is filled before the program's first call, and read-only afterwards.
#pragma once
#include "engine/collectives/operations.hpp"
#include "mpi/shim/abi/abi.hpp"
#include "mpi/shim/process/host_table.hpp"

namespace nearfield::mpi {

// True if the host raises an error when a rank's own block has one address in send and receive buffer. The MPICH family
// does, unless MPIR_CVAR_COLL_ALIAS_CHECK forbids it, Open MPI does not. If false, such a call is served as in place.
inline constinit bool host_rejects_aliases = false;
// The operations in which hosts accept less data than a rank expects (team::Team::takes_less); a bcast: some hosts.
inline constexpr std::uint32_t takes_less =
    1u << unsigned(collectives::Collective::gather) | 1u << unsigned(collectives::Collective::scatter) |
    (abi::compares_lengths ? 0 : 1u << unsigned(collectives::Collective::bcast));

inline constinit Host host = {};

// Returns the host's symbol of that name; nullptr: it has none.
using FindInHost = void*(const char* name);
// Fills the table by calling `find`; false: the host lacks a function, which is logged. All functions are looked up
// here, since afterwards the host's symbol table leads to Nearfield (mpi/preload/preload.cpp).
bool bind_host(FindInHost* find);

}  // namespace nearfield::mpi
