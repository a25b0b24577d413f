// All differences between the families of hosts: how our handles are distinguished from the host's, integers for
// handles, constants, layouts and peculiarities. Each family has a header, all with the same names; pointers.hpp and
// toint.hpp are shared by two families each.
#pragma once
#include <mpi.h>

#if defined(NEARFIELD_HOST_MPICH)
#include "mpi/shim/abi/mpich.hpp"
#elif defined(NEARFIELD_HOST_OMPI)
#include "mpi/shim/abi/open_mpi.hpp"
#else
#include "mpi/shim/abi/standard.hpp"
#endif
