// All differences between the families of hosts: how our handles are distinguished from the host's, how handles and
// integers are converted, constants, layouts, and how hosts behave where the standard lets them differ. Each family has
// a header that defines the same names; pointers.hpp and toint.hpp are shared by two families each.
#pragma once
#include <mpi.h>

#if defined(NEARFIELD_HOST_MPICH)
#include "mpi/shim/abi/mpich.hpp"
#elif defined(NEARFIELD_HOST_OMPI)
#include "mpi/shim/abi/open_mpi.hpp"
#else
#include "mpi/shim/abi/standard.hpp"
#endif
