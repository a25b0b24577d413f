/* The smallest program, for tests of what is around it; prints "good" from rank 0. several [plain|stall|different WHAT] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int allreduce_works(MPI_Comm comm) {
  int r, p, sum = 0;
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &p);
  int value = r + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == p * (p + 1) / 2;
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

static void different(const char* what) {
  double a[8] = {0}, b[8] = {0};
  int odd = rank == 1;
  if (!strcmp(what, "roots")) MPI_Bcast(a, 4, MPI_DOUBLE, odd, MPI_COMM_WORLD);
  if (!strcmp(what, "lengths")) MPI_Bcast(a, odd ? 3 : 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (!strcmp(what, "longer")) MPI_Allreduce(a, b, odd ? 4 : 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(what, "far longer")) {
    double *from = calloc(60000, 8), *to = calloc(60000, 8);
    MPI_Allreduce(from, to, odd ? 60000 : 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (!strcmp(what, "operators")) MPI_Allreduce(a, b, 4, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(what, "parts") || !strcmp(what, "combined parts")) {
    const int ones[] = {1, 1, 2}, others[] = {2, 1, 1};
    MPI_Op op = MPI_SUM;
    if (!strcmp(what, "combined parts")) MPI_Op_create(add, 1, &op);
    MPI_Reduce_scatter(a, b, odd ? others : ones, MPI_DOUBLE, op, MPI_COMM_WORLD);
  }
  if (!strcmp(what, "collectives")) {
    if (odd) MPI_Barrier(MPI_COMM_WORLD);
    else MPI_Bcast(a, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int good = 1, all = 0;
  const char* what = argc > 1 ? argv[1] : "plain";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strcmp(what, "plain")) good = allreduce_works(MPI_COMM_WORLD);
  if (!strcmp(what, "different")) different(argv[2]);
  if (!strcmp(what, "stall")) {
    allreduce_works(MPI_COMM_WORLD);
    if (rank == 0) sleep(3);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Reduce(&good, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  if (rank == 0 && all) printf("good\n");
  MPI_Finalize();
  return 0;
}
