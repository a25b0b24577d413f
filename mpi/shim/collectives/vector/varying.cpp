#include "mpi/shim/collectives/vector/varying.hpp"

namespace nearfield::mpi {

bool prepare(Rooted& operation, const Communicator& c) {
  const bool in_place = operation.own.in_place(), inter = c.inter;
  const int root = operation.root;
  operation.is_idle = inter && root == MPI_PROC_NULL;
  operation.is_root = inter ? root == MPI_ROOT : root == c.rank;
  operation.has_own = !inter;
  operation.own_in_place = !inter && in_place;
  operation.root = inter && operation.is_root ? 0 : root;
  if (operation.is_idle) return true;
  if (operation.root < 0 || operation.root >= c.size) return false;
  if (!operation.is_root) return !in_place;
  return operation.all.prepare() && (inter || in_place || !aliased(operation.own, 0, operation.all, root));
}

}  // namespace nearfield::mpi
