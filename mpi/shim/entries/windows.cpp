// Entries of one-sided operations: a file of its own, so that ninja compiles these files in parallel.
#include "mpi/shim/process/entry.hpp"
#include "mpi/shim/rma/accumulating.hpp"
#include "mpi/shim/rma/moving.hpp"

namespace nearfield::mpi {

#define HERE_windows ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
