/* What one rank alone gets wrong must not leave the others waiting, and all ranks must agree on what was no call.
   "good" on rank 0.

     wrong aliased   the same buffer twice, on ranks that get nothing as well: an error on all, then they are in step
           unequal   a root that gives itself another length than it takes of the others: an error on it
           early     the same in the communicator's first collective call, which does not wait
           statuses  what MPI_Waitall leaves in MPI_ERROR */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, wrong;

static void expect(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  wrong = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (strcmp(what, "early")) MPI_Barrier(comm);
  int a[256] = {0}, b[256] = {0}, one = 1, sum = 0;
  if (!strcmp(what, "aliased")) {
    int counts[64] = {0};
    counts[size - 1] = 4;
    expect(MPI_Exscan(a, a, 4, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS, "Exscan");
    expect(MPI_Reduce_scatter(a, a, counts, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS, "Reduce_scatter");
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size, "out of step");
  } else if (!strcmp(what, "unequal")) {
    const int code = MPI_Gather(a, 1, MPI_INT, b, 4, MPI_INT, 0, comm);
    int class = MPI_SUCCESS;
    if (code) MPI_Error_class(code, &class);
    expect(rank || class == MPI_ERR_TRUNCATE, "Gather");
  } else if (!strcmp(what, "early")) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Igather(a, 1, MPI_INT, b, 4, MPI_INT, 0, comm, &request), class = MPI_SUCCESS;
    if (code) MPI_Error_class(code, &class);
    expect(rank || class == MPI_ERR_TRUNCATE, "Igather");
    if (!code) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Request request[3];
    MPI_Status status[3];
    memset(status, 77, sizeof status);
    MPI_Irecv(a, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &request[0]);
    MPI_Isend(b, 1, MPI_INT, (rank + 1) % size, 0, comm, &request[1]);
    request[2] = MPI_REQUEST_NULL;
    MPI_Waitall(3, request, status);
    for (int i = 0; i < 3; ++i) expect(status[i].MPI_ERROR == MPI_SUCCESS, "MPI_ERROR");
  }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("good\n");
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return any;
}
