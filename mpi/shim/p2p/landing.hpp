// Shared by receives that are packed first (receiving.hpp, probing.cpp, sendrecv.hpp).
#pragma once
#include <algorithm>

#include "mpi/shim/p2p/any_source.hpp"

namespace nearfield::mpi {

// Unpacks what a complete receive has brought. Returns its outcome.
inline int land(Packed& packed, const messages::Request& request) {
  const int code = packed.unpack_bytes(std::min(request.received, packed.bytes()));
  return code == MPI_SUCCESS ? outcome(request) : code;
}

}  // namespace nearfield::mpi
