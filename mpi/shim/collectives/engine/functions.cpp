// The collectives, int and large-count forms: of each row of mpi/functions.def, what its class of parameters asks for
// (movement.hpp, reductions.hpp; alone.hpp where there is one rank, across.hpp and across_reducing.hpp where there are
// two groups).
#include "mpi/shim/collectives/engine/movement.hpp"
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/intercomm/across.hpp"
#include "mpi/shim/collectives/intercomm/across_reducing.hpp"
#include "mpi/shim/collectives/single/alone.hpp"
#include "mpi/shim/process/narrowing.hpp"

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

int Barrier(MPI_Comm comm) {
  auto host_call = [&] { return host.Barrier(comm); };
  if (is_apart(comm)) [[unlikely]] {
    if (find_alone(comm)) return alone::finish(Collective::barrier, 0, alone::begin());
    if (find_across(comm)) return across::barrier("MPI_Barrier", Blocking{host_call}, comm);
  }
  const Admission admitted = admit(comm);
  if (!admitted.communicator) return to_host(Collective::barrier, admitted.reason, host_call);
  return carry(*admitted.communicator, Call{Collective::barrier}, "MPI_Barrier", host_call);
}

namespace {
template <class When>
int barrier_task(const char* function, const When& when, MPI_Comm comm) {
  constexpr Collective collective = Collective::barrier;
  if (find_alone(comm)) return alone::serve(collective, function, when, alone::kept(&collective, 0, host.byte), comm);
  if (find_across(comm)) return across::barrier(function, when, comm);
  return with_team(collective, function, when, comm, nullptr, [&](Communicator& c) {
    return post_task(c, Call{collective}, function, nullptr, when, Call{collective});
  });
}
}  // namespace

int Ibarrier(MPI_Comm comm, MPI_Request* request) {
  const auto host_call = [=](MPI_Request* made) { return host.Ibarrier(comm, made); };
  return barrier_task("MPI_Ibarrier", Nonblocking{host_call, request}, comm);
}
int Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const auto host_call = [&] {
    return call_if_present(host.Barrier_init, "MPI_Barrier_init", comm, comm, info, request);
  };
  return barrier_task("MPI_Barrier_init", Persistent{host_call, request}, comm);
}

#define F(name, types)
#define L(name, types)
#define Y(name, types)
#define YL(name, types)
#define T(result, name, types)
#define E(name, overlapping, operation, class)
#define DEFINE(name, operation, class, parameters, host_function, ...)                                       \
  int name parameters {                                                                                      \
    constexpr Collective collective = Collective::operation;                                                 \
    const auto host_call = host_function;                                                                    \
    const __VA_ARGS__;                                                                                       \
    if (is_apart(c)) [[unlikely]] {                                                                          \
      if (find_alone(c))                                                                                     \
        return alone::serve(collective, "MPI_" #name, when, alone::class<collective>(ARGUMENTS_##class), c); \
      if (find_across(c)) return across::class<collective>("MPI_" #name, when, ARGUMENTS_##class);           \
    }                                                                                                        \
    return class<collective>("MPI_" #name, when, ARGUMENTS_##class);                                         \
  }
// Forms that are called least share their code, which differs in the host's function alone.
#define AT_ONCE                      \
  Blocking when {                    \
    FunctionRef<int()> { host_call } \
  }
#define LATER \
  Nonblocking when { host_call, q }
#define PLANNED \
  Persistent when { host_call, q }

#define COUNT int
#define C(name, overlapping, operation, class)                                                  \
  DEFINE(                                                                                       \
      name, operation, class, PARAMETERS_##class, [&] { return host.name(ARGUMENTS_##class); }, \
      Blocking when{host_call})                                                                 \
  DEFINE(                                                                                       \
      overlapping, operation, class, AND_REQUEST(PARAMETERS_##class),                           \
      [=](MPI_Request* made) { return host.overlapping(ARGUMENTS_##class, made); }, LATER)      \
  DEFINE(                                                                                       \
      name##_init, operation, class, AND_INFO(PARAMETERS_##class),                              \
      [&] { return call_if_present(host.name##_init, "MPI_" #name "_init", c, ARGUMENTS_##class, info, q); }, PLANNED)
#include "mpi/functions.def"
#undef COUNT
#undef C

#define COUNT MPI_Count
#define C(name, overlapping, operation, class)                                                                       \
  DEFINE(                                                                                                            \
      name##_c, operation, class, PARAMETERS_##class,                                                                \
      [&] { return large_with_counts(host.name##_c, host.name, "MPI_" #name "_c", c, ARGUMENTS_##class); }, AT_ONCE) \
  DEFINE(                                                                                                            \
      overlapping##_c, operation, class, AND_REQUEST(PARAMETERS_##class),                                            \
      [=](MPI_Request* made) {                                                                                       \
        return large_with_counts(host.overlapping##_c, host.overlapping, "MPI_" #overlapping "_c", c,                \
                                 ARGUMENTS_##class, made);                                                           \
      },                                                                                                             \
      LATER)                                                                                                         \
  DEFINE(                                                                                                            \
      name##_init_c, operation, class, AND_INFO(PARAMETERS_##class),                                                 \
      [&] {                                                                                                          \
        return large_with_counts(host.name##_init_c, host.name##_init, "MPI_" #name "_init_c", c, ARGUMENTS_##class, \
                                 info, q);                                                                           \
      },                                                                                                             \
      PLANNED)
#include "mpi/functions.def"

}  // namespace nearfield::mpi
