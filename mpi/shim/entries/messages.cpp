// Entries of point to point that templates serve: a file of its own, so that ninja compiles these files in parallel.
#include "mpi/shim/p2p/receiving.hpp"
#include "mpi/shim/p2p/sending.hpp"
#include "mpi/shim/p2p/sendrecv.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_messages ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
