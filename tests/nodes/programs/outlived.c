/* Receives from anybody whose request is freed, or whose communicator is; what comes from a neighbour on its node and from another node. Rank 0 receives, all others send. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
#define CHECK(what)                                                    \
  do {                                                                 \
    if (!(what)) {                                                     \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                    \
    }                                                                  \
  } while (0)

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
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int bytes = 8; bytes <= 1 << 20; bytes <<= 8) outlived(bytes);
  freed();
  puts("good");
  MPI_Finalize();
}
