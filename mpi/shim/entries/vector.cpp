// Entries of collectives that are made of edges: counts differ, or ranks are neighbours. It is a file of its own, so
// that ninja compiles these files in parallel.
#include "mpi/shim/collectives/vector/classes.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_vector ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
