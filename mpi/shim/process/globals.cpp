#include "mpi/shim/process/globals.hpp"

namespace nearfield {

constinit mpi::Shim mpi::shim;

Globals& globals() noexcept { return mpi::shim.engine; }

}  // namespace nearfield
