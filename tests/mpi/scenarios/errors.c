/* Wrong arguments, one line each: what was wrong, the error class returned, how often the error handler saw it. */
#include "scenarios.h"

static int seen;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++seen;
}

static void report(const char* what, int code) {
  if (rank == 0) printf("%s: class %d, handler called %d times\n", what, class_of(code), seen);
  seen = 0;
}

SCENARIO(errors) {
  MPI_Errhandler errhandler;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &errhandler);
  MPI_Comm_set_errhandler(comm, errhandler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
  double a[64] = {0}, b[64] = {0};
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  report("root too large", MPI_Bcast(a, 1, MPI_DOUBLE, size, comm));
  report("root negative", MPI_Bcast(a, 1, MPI_DOUBLE, -5, comm));
  report("reduce root", MPI_Reduce(a, b, 1, MPI_DOUBLE, MPI_SUM, size + 3, comm));
  report("gather root", MPI_Gather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, size, comm));
  report("scatter root", MPI_Scatter(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, -9, comm));
  report("bcast count", MPI_Bcast(a, -1, MPI_DOUBLE, 0, comm));
  report("allgather count", MPI_Allgather(a, -1, MPI_DOUBLE, b, -1, MPI_DOUBLE, comm));
  report("alltoall count", MPI_Alltoall(a, -1, MPI_DOUBLE, b, -1, MPI_DOUBLE, comm));
  int ones[64], zeros[64] = {0}, bad[64];
  MPI_Datatype doubles[64], nulls[64];
  for (int r = 0; r < 64; ++r) {
    ones[r] = 1;
    bad[r] = -1;
    doubles[r] = MPI_DOUBLE;
    nulls[r] = MPI_DATATYPE_NULL;
  }
  report("alltoallv count", MPI_Alltoallv(a, bad, zeros, MPI_DOUBLE, b, bad, zeros, MPI_DOUBLE, comm));
  report("alltoallv datatype",
         MPI_Alltoallv(a, ones, zeros, MPI_DATATYPE_NULL, b, ones, zeros, MPI_DATATYPE_NULL, comm));
  report("alltoallw count", MPI_Alltoallw(a, bad, zeros, doubles, b, bad, zeros, doubles, comm));
  report("alltoallw datatype", MPI_Alltoallw(a, ones, zeros, nulls, b, ones, zeros, nulls, comm));
  report("null communicator", MPI_Barrier(MPI_COMM_NULL));
  report("null communicator, allreduce", MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL));
  report("null datatype", MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, comm));
  report("null datatype, allreduce", MPI_Allreduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
  report("null operator", MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_OP_NULL, comm));
  report("bitwise and of doubles", MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, comm));
  report("minloc of doubles", MPI_Reduce(a, b, 1, MPI_DOUBLE, MPI_MINLOC, 0, comm));
  report("sum of characters", MPI_Allreduce(a, b, 1, MPI_CHAR, MPI_SUM, comm));
  report("sum of bytes", MPI_Allreduce(a, b, 1, MPI_BYTE, MPI_SUM, comm));
  const int four = 4;
  report("aliased allgather", MPI_Allgather(b + rank, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, comm));
  report("aliased alltoall", MPI_Alltoall(b, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, comm));
  report("aliased allreduce", MPI_Allreduce(b, b, 1, MPI_DOUBLE, MPI_SUM, comm));
  report("aliased reduce_scatter_block", MPI_Reduce_scatter_block(b, b, 1, MPI_DOUBLE, MPI_SUM, comm));
  MPI_Barrier(comm);
#ifdef MPICH_VERSION /* the others do not look */
  if (rank == 0) {   /* the error is the root's alone: it is raised before anybody is waited for */
    report("aliased gather", MPI_Gather(b, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, comm));
    report("aliased scatter", MPI_Scatter(b, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, comm));
    report("aliased reduce", MPI_Reduce(b, b, 1, MPI_DOUBLE, MPI_SUM, 0, comm));
  }
#endif
  report("bcast of less than expected", MPI_Bcast(a, rank == 1 ? 1 : four, MPI_DOUBLE, 1, comm));
  report("bcast of more than expected", MPI_Bcast(a, rank == 1 ? four : 1, MPI_DOUBLE, 1, comm));
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  report(sum == size ? "works afterwards" : "broken afterwards", MPI_SUCCESS);
  MPI_Errhandler_free(&errhandler);
  MPI_Comm_free(&comm);
}
