// Entries of the collectives that a team can serve, blocking, non-blocking and persistent. It is a file of its own, so
// that ninja compiles these files in parallel.
#include "mpi/shim/collectives/engine/classes.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_collectives ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
