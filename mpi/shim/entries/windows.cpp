// Entries of one-sided operations. Apart, so that they are compiled beside each other.
#include "mpi/shim/process/entry.hpp"
#include "mpi/shim/rma/accumulating.hpp"
#include "mpi/shim/rma/moving.hpp"

namespace nearfield::mpi {

#define HERE_windows ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
