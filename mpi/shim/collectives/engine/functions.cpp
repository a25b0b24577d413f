// What the classes of reductions share.
#include "mpi/shim/collectives/engine/classes.hpp"

namespace nearfield::mpi {

std::optional<Reason> describe_reduction(Call& call, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  if (count < 0) return Reason::argument;
  const TypeInfo* const info = find_type(type);
  if (!info) return Reason::type;
  const auto known = find_op(op);
  if (!known) return Reason::op;
  using reducing::Op;
  const bool logical = *known == Op::land || *known == Op::lor || *known == Op::lxor;
  if (logical && info->fortran_integer) return Reason::type;
  call.fold = reducing::fold(*known, info->type);
  if (!call.fold) return Reason::type;
  call.type = info->type;
  call.op = *known;
  call.count = std::size_t(count);
  call.bytes = call.count * reducing::size_of(info->type);
  return std::nullopt;
}

int check_before_host(Communicator& c, const Call& call, const char* function) {
  try {
    collectives::compare_calls(c.near_team()->context(), call);
  } catch (const team::Broken& broken) {
    return raise(c.comm, function, broken);
  }
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi
