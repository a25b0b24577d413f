// Entries of collectives of one communicator, blocking, non-blocking and persistent. Apart, so that they are compiled
// beside each other.
#include "mpi/shim/collectives/engine/classes.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_collectives ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
