#include "mpi/shim/process/version.hpp"

namespace nearfield::mpi {

const char* version() { return NEARFIELD_VERSION; }

}  // namespace nearfield::mpi

// libnearfield.so asks, and attaches no shim of another version.
extern "C" __attribute__((visibility("default"))) const char* nearfield_shim_version() { return NEARFIELD_VERSION; }
