/* What can become of a receive from anybody beside a message: truncation, a request that is freed, a communicator that is;
   what comes from a neighbour on its node and from another node. Rank 0 receives, all others send. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, handled;
#define CHECK(what)                                                    \
  do {                                                                 \
    if (!(what)) {                                                     \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                    \
    }                                                                  \
  } while (0)

static void handle(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
  ++handled;
}
static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

/* From each rank a message that is too long, into every kind of receive; they are told once. */
static void truncated(int bytes, MPI_Errhandler handler) {
  char *data = calloc(1, (size_t)bytes);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  for (int from = 1; from < size; ++from)
    for (int kind = 0; kind < 4; ++kind) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == from) MPI_Send(data, bytes, MPI_BYTE, 0, 3, comm);
      if (rank != 0) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Status status;
      int code = MPI_SUCCESS, flag = 0;
      handled = 0;
      if (kind == 0) {
        code = MPI_Recv(data, bytes / 2, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &status);
      } else {
        MPI_Irecv(data, bytes / 2, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &request);
        if (kind == 1) code = MPI_Wait(&request, &status);
        while (kind == 2 && !flag) code = MPI_Test(&request, &flag, &status);
        if (kind == 3) {
          code = MPI_Waitall(1, &request, &status);
          CHECK(class_of(code) == MPI_ERR_IN_STATUS);
          code = status.MPI_ERROR;
        }
      }
      CHECK(class_of(code) == MPI_ERR_TRUNCATE);
      CHECK(request == MPI_REQUEST_NULL && handled == (handler != MPI_ERRORS_RETURN));
    }
  MPI_Comm_free(&comm);
  free(data);
}

/* The program does not wait for what it has freed, but it comes all the same. */
static void freed(void) {
  for (int from = 1; from < size; ++from) {
    volatile int got = -1;
    MPI_Request request;
    if (rank == 0) {
      MPI_Irecv((void *)&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      CHECK(request == MPI_REQUEST_NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == from) MPI_Send(&from, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    while (rank == 0 && got != from) {
      int flag;
      MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A communicator that is freed while a receive waits in it. */
static void outlived(int bytes) {
  for (int from = 1; from < size; ++from) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status status;
    char *data = calloc(1, (size_t)bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 0) MPI_Irecv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, 6, comm, &request);
    if (rank == from) memset(data, 7, (size_t)bytes), MPI_Isend(data, bytes, MPI_BYTE, 0, 6, comm, &request);
    MPI_Comm_free(&comm);
    if (rank == 0 || rank == from) MPI_Wait(&request, &status);
    CHECK(rank || (status.MPI_SOURCE == from && data[bytes - 1] == 7));
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
  }
}

int main(int argc, char **argv) {
  MPI_Errhandler counting;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_errhandler(handle, &counting);
  for (int bytes = 8; bytes <= 1 << 20; bytes <<= 8) {
    truncated(bytes, MPI_ERRORS_RETURN);
    truncated(bytes, counting);
    outlived(bytes);
  }
  freed();
  MPI_Errhandler_free(&counting);
  puts("good");
  MPI_Finalize();
}
