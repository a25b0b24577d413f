#include "mpi/shim/collectives/engine/classes.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_collectives ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
