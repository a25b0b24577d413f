/* Revoked communicators and dead ranks (MPIX_Comm_revoke). Arguments: what the others wait in, one after the other; or "dead"
   and one such wait. Rank 0 prints "good" when every survivor got the right error class and time. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int class_of(int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* A call that nobody answers. */
static int wait_in(const char* what, MPI_Comm comm) {
  static char big[1 << 20];
  int value = 0, flag = 0, code = MPI_SUCCESS;
  MPI_Request requests[2];
  MPI_Message message;
  MPI_Status status;
  if (!strcmp(what, "barrier")) return MPI_Barrier(comm);
  if (!strcmp(what, "bcast")) return MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  if (!strcmp(what, "alltoallv")) {
    static int counts[64], places[64], from[64], to[64];
    int size;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = i;
    return MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, comm);
  }
  if (!strcmp(what, "ibarrier")) {
    code = MPI_Ibarrier(comm, &requests[0]);
    return code == MPI_SUCCESS ? MPI_Wait(&requests[0], MPI_STATUS_IGNORE) : code;
  }
  if (!strcmp(what, "both barriers")) {
    MPI_Ibarrier(comm, &requests[0]);
    code = MPI_Barrier(comm);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    return code;
  }
  if (!strcmp(what, "recv")) return MPI_Recv(&value, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
  if (!strcmp(what, "any")) return MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, MPI_STATUS_IGNORE);
  if (!strcmp(what, "probe")) return MPI_Probe(0, 7, comm, &status);
  if (!strcmp(what, "mprobe")) return MPI_Mprobe(0, 7, comm, &message, &status);
  if (!strcmp(what, "send")) return MPI_Send(big, sizeof big, MPI_CHAR, 0, 8, comm);
  if (!strcmp(what, "ssend")) return MPI_Ssend(&value, 1, MPI_INT, 0, 8, comm);
  if (!strcmp(what, "test")) {
    MPI_Irecv(&value, 1, MPI_INT, 0, 7, comm, &requests[0]);
    while (!flag && code == MPI_SUCCESS) code = MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    return code;
  }
  MPI_Status statuses[2];
  if (!strcmp(what, "overlapping")) {
    int sum = 0;
    code = MPI_Ibarrier(comm, &requests[1]);
    if (code != MPI_SUCCESS) return code;
    MPI_Irecv(&value, 1, MPI_INT, 0, 7, comm, &requests[0]);
    code = MPI_Waitall(2, requests, statuses);
    if (class_of(code) == MPI_ERR_IN_STATUS)
      code = statuses[0].MPI_ERROR == MPI_SUCCESS ? statuses[1].MPI_ERROR : statuses[0].MPI_ERROR;
    /* What is left may be waited for again, and comes to an end. */
    for (int i = 0; i < 2; ++i)
      if (requests[i] != MPI_REQUEST_NULL) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]) == MPI_SUCCESS)
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    return code;
  }
  MPI_Irecv(&value, 1, MPI_INT, 0, 7, comm, &requests[0]);
  MPI_Irecv(&flag, 1, MPI_INT, 0, 9, comm, &requests[1]);
  code = MPI_Waitall(2, requests, statuses);
  return class_of(code) == MPI_ERR_IN_STATUS ? statuses[0].MPI_ERROR : code;
}

/* A duplicate of the world that has served calls of both kinds. */
static MPI_Comm used(int rank, int size) {
  MPI_Comm comm;
  int warm = 1, sum = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Allreduce(&warm, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &sum, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
               MPI_STATUS_IGNORE);
  return comm;
}

/* Rank 0 dies; the others wait for it, revoke and go on without it. */
static void dead(const char* what, int rank, int size) {
  int warm = 1, sum = 0;
  MPI_Comm comm = used(rank, size), rest;
  if (rank == 0) raise(SIGKILL);
  const int seen = class_of(wait_in(what, comm));
  if (seen != MPIX_ERR_PROC_FAILED && seen != MPIX_ERR_REVOKED) {
    fprintf(stderr, "rank %d: class %d where a failed process was expected\n", rank, seen);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPIX_Comm_revoke(comm);
  MPIX_Comm_shrink(comm, &rest);
  MPI_Allreduce(&warm, &sum, 1, MPI_INT, MPI_SUM, rest);
  MPI_Comm_rank(rest, &rank);
  if (rank == 0) printf(sum == size - 1 ? "good\n" : "wrong\n");
  fflush(stdout);
  MPI_Barrier(rest);
  _exit(0);
}

/* Rank 0 revokes what the others wait in; later calls fail at once, other communicators work. */
static void revoked(const char* what, int rank, int size) {
  int warm = 1, sum = 0;
  MPI_Comm comm = used(rank, size);
  if (rank == 0) {
    usleep(300000);
    MPIX_Comm_revoke(comm);
  } else {
    const double start = MPI_Wtime();
    const int seen = class_of(wait_in(what, comm));
    if (seen != MPIX_ERR_REVOKED || MPI_Wtime() - start > 5) {
      fprintf(stderr, "rank %d, %s: class %d after %.1f s where %d was expected\n", rank, what, seen, MPI_Wtime() - start,
              MPIX_ERR_REVOKED);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (class_of(MPI_Barrier(comm)) != MPIX_ERR_REVOKED ||
      class_of(MPI_Send(&rank, 1, MPI_INT, 0, 5, comm)) != MPIX_ERR_REVOKED) {
    fprintf(stderr, "rank %d, %s: the communicator works again\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Allreduce(&warm, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!strcmp(argv[1], "dead")) dead(argv[2], rank, size);
  for (int i = 1; i < argc; ++i) revoked(argv[i], rank, size);
  if (rank == 0) puts("good");
  fflush(stdout);
  /* A collective of the host: Open MPI's MPI_Finalize hangs, plain too, if none comes after a non-blocking collective of
     a revoked communicator. */
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
