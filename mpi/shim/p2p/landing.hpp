// Shared by receives that are packed first (receiving.hpp, probing.cpp, sendrecv.hpp).
#pragma once
#include "mpi/shim/p2p/any_source.hpp"

namespace nearfield::mpi {

// Unpacks what a complete receive has brought. Returns its outcome.
inline int land(Packed& packed, const messages::Request& request) {
  const int code = packed.unpack_bytes(request.received);
  return code == MPI_SUCCESS ? outcome(request) : raised_by_host(code);
}

}  // namespace nearfield::mpi
