// Shared by calls that receive into a packed copy (receiving.cpp, probing.cpp, sendrecv.cpp).
#pragma once
#include "mpi/shim/p2p/any_source.hpp"

namespace nearfield::mpi {

// Unpacks the data of a complete receive. Returns its error class.
inline int land(Packed& packed, const messages::Request& request) {
  const int code = packed.unpack_bytes(request.received);
  return code == MPI_SUCCESS ? outcome(request) : raised_by_host(code);
}

}  // namespace nearfield::mpi
