// The collectives made of edges but all-to-all, in all their forms: of each row of
// mpi/functions.def, what its class of parameters asks for (varying.hpp, neighbors.hpp).
#include "mpi/shim/collectives/vector/neighbors.hpp"
#include "mpi/shim/collectives/vector/varying.hpp"
#include "mpi/shim/process/narrowing.hpp"

namespace nearfield::mpi {
namespace {

// How long the arrays of a large-count call are where the host has the int form alone, by its class of parameters.
std::size_t at_root(MPI_Comm comm, int root) {
  int inter = 0, rank = 0;
  host.Comm_test_inter(comm, &inter);
  host.Comm_rank(comm, &rank);
  return (inter ? root == MPI_ROOT : root == rank) ? partners_in(comm) : 0;
}
ArrayLengths among(MPI_Comm comm, unsigned of_sends) {
  Communicator* const c = communicator_of(comm);
  const Neighborhood* const neighbors = c ? neighborhood_of(*c) : nullptr;
  if (!neighbors) return {};
  return {neighbors->targets.size(), neighbors->sources.size(), of_sends};
}
#define LENGTHS_all_gathered \
  ArrayLengths { 0, partners_in(c) }
#define LENGTHS_gathered \
  ArrayLengths { 0, at_root(c, root) }
#define LENGTHS_scattered \
  ArrayLengths { at_root(c, root), 0, 2 }
#define LENGTHS_neighbors_block \
  ArrayLengths {}
#define LENGTHS_neighbors_blocks \
  ArrayLengths {}
#define LENGTHS_neighbors_gathered among(c, 0)
#define LENGTHS_neighbors_varying among(c, 2)
#define LENGTHS_neighbors_typed among(c, 1)

}  // namespace

#define F(name, types)
#define L(name, types)
#define Y(name, types)
#define YL(name, types)
#define T(result, name, types)
#define C(name, overlapping, operation, class)

#define DEFINE(name, operation, class, parameters, ...) \
  int name parameters { return class<Collective::operation>("MPI_" #name, __VA_ARGS__, ARGUMENTS_##class); }

#define COUNT int
#define PLACE int
#define E(name, overlapping, operation, class)                                                               \
  DEFINE(name, operation, class, PARAMETERS_##class, Blocking{[&] { return host.name(ARGUMENTS_##class); }}) \
  DEFINE(overlapping, operation, class, AND_REQUEST(PARAMETERS_##class),                                     \
         Nonblocking{[=](MPI_Request* made) { return host.overlapping(ARGUMENTS_##class, made); }, q})       \
  DEFINE(                                                                                                    \
      name##_init, operation, class, AND_INFO(PARAMETERS_##class),                                           \
      Persistent{                                                                                            \
          [&] { return call_if_present(host.name##_init, "MPI_" #name "_init", c, ARGUMENTS_##class, info, q); }, q})
#include "mpi/functions.def"
#undef COUNT
#undef PLACE
#undef E

// Narrowed arrays of a call that overlaps others would have to live as long as its request.
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define E(name, overlapping, operation, class)                                                                         \
  DEFINE(name##_c, operation, class, PARAMETERS_##class, Blocking{[&] {                                                \
           if (host.name##_c) return host.name##_c(ARGUMENTS_##class);                                                 \
           return narrowed(                                                                                            \
               host.name, LENGTHS_##class, [&] { return raise(c, "MPI_" #name "_c", too_large); }, ARGUMENTS_##class); \
         }})                                                                                                           \
  DEFINE(overlapping##_c, operation, class, AND_REQUEST(PARAMETERS_##class),                                           \
         Nonblocking{[=](MPI_Request* made) {                                                                          \
                       return call_if_present(host.overlapping##_c, "MPI_" #overlapping "_c", c, ARGUMENTS_##class,    \
                                              made);                                                                   \
                     },                                                                                                \
                     q})                                                                                               \
  DEFINE(                                                                                                              \
      name##_init_c, operation, class, AND_INFO(PARAMETERS_##class),                                                   \
      Persistent{                                                                                                      \
          [&] { return call_if_present(host.name##_init_c, "MPI_" #name "_init_c", c, ARGUMENTS_##class, info, q); },  \
          q})
#include "mpi/functions.def"

}  // namespace nearfield::mpi
