// Operators and types that our requests may need after the program has freed them. Then MPI_Op_free or MPI_Type_free of
// the host is called only when the last of these requests is freed, since operators cannot be duplicated.
#pragma once
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

// Kinds of handles, as types of their own, since all handles are integers on some hosts.
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
