// Operators and types that requests of ours still need when the program has freed them. The host would forget them, and
// has no duplicate of an operator: the host's free is put off until the last of these requests has gone.
#pragma once
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// The kinds of handles; on some hosts all are integers.
struct Operator {
  using Handle = MPI_Op;
};
struct Datatype {
  using Handle = MPI_Datatype;
};

// One use of a handle. Throws std::bad_alloc.
template <class Kind>
class InUse {
 public:
  explicit InUse(typename Kind::Handle handle);
  ~InUse();
  InUse(const InUse&) = delete;

 private:
  const typename Kind::Handle handle_;
};

}  // namespace nearfield::mpi
