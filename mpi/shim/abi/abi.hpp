// What differs between the families of hosts, and differs nowhere else: how handles of ours are told from the host's,
// what its integers for handles are, constants, layouts and peculiarities. A header for each, all with the
// same names; what two share is in pointers.hpp and toint.hpp.
#pragma once
#include <mpi.h>

#if defined(NEARFIELD_HOST_MPICH)
#include "mpi/shim/abi/mpich.hpp"
#elif defined(NEARFIELD_HOST_OMPI)
#include "mpi/shim/abi/open_mpi.hpp"
#else
#include "mpi/shim/abi/standard.hpp"
#endif
