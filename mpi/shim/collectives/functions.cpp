// The collectives, int and large-count forms: of each row of mpi/functions.def, what its class of parameters asks for
// (movement.hpp, reductions.hpp; alone.hpp where there is one rank).
#include "mpi/shim/collectives/alone.hpp"
#include "mpi/shim/collectives/movement.hpp"
#include "mpi/shim/collectives/reductions.hpp"

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
    collectives::compare_calls(c.near_team()->track(), call);
  } catch (const team::Broken& broken) {
    return raise(comm, function, broken);
  }
  return MPI_SUCCESS;
}

int Barrier(MPI_Comm comm) {
  auto host_call = [&] { return host.Barrier(comm); };
  if (find_alone(comm)) return alone::finish(Collective::barrier, 0, alone::begin());
  const Admission admitted = admit(comm);
  if (!admitted.communicator) return to_host(Collective::barrier, admitted.reason, host_call);
  return carry(*admitted.communicator, comm, Call{Collective::barrier}, "MPI_Barrier", host_call);
}

#define F(name, types)
#define L(name, types)
#define Y(name, types)
#define YL(name, types)
#define T(result, name, types)
#define E(name, overlapping, operation, class)

#define COUNT int
#define C(name, operation, class)                                                             \
  int name PARAMETERS_##class {                                                               \
    auto host_call = [&] { return host.name(ARGUMENTS_##class); };                            \
    if (find_alone(c)) [[unlikely]]                                                           \
      return alone::class<Collective::operation>("MPI_" #name, host_call, ARGUMENTS_##class); \
    return class<Collective::operation>("MPI_" #name, host_call, ARGUMENTS_##class);          \
  }
#include "mpi/functions.def"
#undef COUNT
#undef C

#define COUNT MPI_Count
#define C(name, operation, class)                                                                              \
  int name##_c PARAMETERS_##class {                                                                            \
    auto host_call = [&] { return large(host.name##_c, host.name, "MPI_" #name "_c", c, ARGUMENTS_##class); }; \
    if (find_alone(c)) [[unlikely]]                                                                            \
      return alone::class<Collective::operation>("MPI_" #name, host_call, ARGUMENTS_##class);                  \
    return class<Collective::operation>("MPI_" #name, host_call, ARGUMENTS_##class);                           \
  }
#include "mpi/functions.def"

}  // namespace nearfield::mpi
