// Entries of point to point that templates serve. Apart, so that they are compiled beside each other.
#include "mpi/shim/p2p/receiving.hpp"
#include "mpi/shim/p2p/sending.hpp"
#include "mpi/shim/p2p/sendrecv.hpp"
#include "mpi/shim/process/entry.hpp"

namespace nearfield::mpi {

#define HERE_messages ,
#define OURS ENTRY
#include "mpi/functions.def"

}  // namespace nearfield::mpi
