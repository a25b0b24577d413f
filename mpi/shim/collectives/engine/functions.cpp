// What the classes of reductions share, and the barrier in its three forms, which has no parameters to share.
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/intercomm/across.hpp"
#include "mpi/shim/collectives/single/alone.hpp"
#include "mpi/shim/process/at_host.hpp"

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

namespace {
template <class When>
int barrier(const char* function, const When& when, MPI_Comm comm) {
  constexpr Collective collective = Collective::barrier;
  if constexpr (When::overlaps)
    if (!when.request) return when.at_host(collective, Reason::argument);
  const Admission by = admit<collective, When::form>(comm);
  switch (by.who) {
    case Server::team:
    case Server::nodes:
      if constexpr (When::overlaps)
        return post_task(*by.communicator, Call{collective}, function, nullptr, when, Call{collective});
      else return carry(*by.communicator, Call{collective}, function, when.host_call);
    case Server::self:
      if constexpr (When::overlaps)
        return alone::serve(collective, function, when, alone::kept(&collective, 0, host.byte), comm);
      else return alone::finish(collective, 0, alone::begin());
    case Server::messages: return across::barrier(function, when, *by.communicator);
    default: return when.at_host(collective, by.reason);
  }
}
}  // namespace

int Barrier(MPI_Comm comm) {
  return barrier("MPI_Barrier", Blocking{[&] { return host.Barrier(comm); }}, comm);
}
int Ibarrier(MPI_Comm comm, MPI_Request* request) {
  const auto host_call = [=](MPI_Request* made) { return host.Ibarrier(comm, made); };
  return barrier("MPI_Ibarrier", Nonblocking{host_call, request}, comm);
}
int Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const auto host_call = [&] { return at_host<Function::Barrier_init>(comm, info, request); };
  return barrier("MPI_Barrier_init", Persistent{host_call, request}, comm);
}

}  // namespace nearfield::mpi
