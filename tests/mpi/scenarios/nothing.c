/* Collectives of no elements, in all forms. */
#include "scenarios.h"

#define GOOD(call, name) REQUIRE((call) == MPI_SUCCESS, name)

#if HAS_PERSISTENT_COLLECTIVES
#define PLANNED(name, ...)                                                            \
  GOOD(MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request), #name "_init"); \
  for (int start = 0; start < 2; ++start) {                                           \
    GOOD(MPI_Start(&request), #name);                                                 \
    GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE), #name);                               \
  }                                                                                   \
  GOOD(MPI_Request_free(&request), #name)
#else
#define PLANNED(name, ...)
#endif
#define ALL(name, iname, ...)                             \
  GOOD(MPI_##name(__VA_ARGS__, comm), #name);             \
  GOOD(MPI_##iname(__VA_ARGS__, comm, &request), #iname); \
  GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE), #iname);    \
  PLANNED(name, __VA_ARGS__)

static void all(MPI_Comm comm, MPI_Op op) {
  enum { most = 64 };
  static int none[most], out[1], in[1];
  const MPI_Datatype type = MPI_INT;
  MPI_Request request;
  ALL(Bcast, Ibcast, out, 0, type, 0);
  ALL(Gather, Igather, out, 0, type, in, 0, type, 0);
  ALL(Scatter, Iscatter, out, 0, type, in, 0, type, 0);
  ALL(Allgather, Iallgather, out, 0, type, in, 0, type);
  ALL(Alltoall, Ialltoall, out, 0, type, in, 0, type);
  ALL(Gatherv, Igatherv, out, 0, type, in, none, none, type, 0);
  ALL(Scatterv, Iscatterv, out, none, none, type, in, 0, type, 0);
  ALL(Allgatherv, Iallgatherv, out, 0, type, in, none, none, type);
  ALL(Alltoallv, Ialltoallv, out, none, none, type, in, none, none, type);
  ALL(Reduce, Ireduce, out, in, 0, type, op, 0);
  ALL(Allreduce, Iallreduce, out, in, 0, type, op);
  ALL(Reduce_scatter_block, Ireduce_scatter_block, out, in, 0, type, op);
  ALL(Reduce_scatter, Ireduce_scatter, out, in, none, type, op);
  ALL(Scan, Iscan, out, in, 0, type, op);
  ALL(Exscan, Iexscan, out, in, 0, type, op);
}

static void first(void* given, void* result, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)result)[i] = ((int*)given)[i];
}

SCENARIO(nothing) {
  MPI_Op op;
  MPI_Comm twin;
  MPI_Op_create(first, 0, &op);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Request request;
  MPI_Ibarrier(twin, &request);
  all(twin, MPI_SUM);
  all(MPI_COMM_WORLD, MPI_SUM);
  all(MPI_COMM_WORLD, op);
  all(MPI_COMM_SELF, MPI_SUM);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Op_free(&op);
  MPI_Comm_free(&twin);
}
