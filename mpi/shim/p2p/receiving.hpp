// Used by packed receives (receiving.cpp, probing.cpp, sendrecv.cpp).
#pragma once
#include <algorithm>

#include "mpi/shim/p2p/any_source.hpp"

namespace nearfield::mpi {

// Unpacks the data of a complete receive. Returns an error class.
inline int land(Packed& packed, const messages::Request& request) {
  const int code = packed.unpack_bytes(std::min(request.received, packed.bytes()));
  return code == MPI_SUCCESS ? outcome(request) : code;
}

}  // namespace nearfield::mpi
