// What the classes of reductions share, and the blocking barrier, which has no parameters to share.
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/intercomm/across.hpp"
#include "mpi/shim/collectives/single/alone.hpp"

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

int check_before_host(Communicator& c, MPI_Comm comm, const Call& call, const char* function) {
  try {
    collectives::compare_calls(c.near_team()->context(), call);
  } catch (const team::Broken& broken) {
    return raise(comm, function, broken);
  }
  return MPI_SUCCESS;
}

int Barrier(MPI_Comm comm) {
  auto host_call = [&] { return host.Barrier(comm); };
  if (is_apart(comm)) [[unlikely]] {
    if (find_alone(comm)) return alone::finish(Collective::barrier, 0, alone::begin());
    if (find_across(comm)) return across::barrier("MPI_Barrier", Blocking{host_call}, comm);
  }
  const Admission admitted = admit(comm);
  if (!admitted.communicator) return to_host(Collective::barrier, admitted.reason, host_call);
  return carry(*admitted.communicator, comm, Call{Collective::barrier}, "MPI_Barrier", host_call);
}

}  // namespace nearfield::mpi
