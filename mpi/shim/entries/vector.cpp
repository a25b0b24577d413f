#include "mpi/shim/collectives/vector/classes.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_vector ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
