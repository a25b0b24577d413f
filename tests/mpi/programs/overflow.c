/* Exchanges a megabyte and prints "good" from rank 0; with an argument rank 0 then writes one byte too far. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  enum { bytes = 1 << 20 };
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *send = malloc(bytes), *recv = malloc(bytes);
  memset(send, rank + 1, bytes);
  MPI_Sendrecv(send, bytes, MPI_CHAR, !rank, 1, recv, bytes, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0 && recv[0] == 2 && recv[bytes - 1] == 2) {
    puts("good");
    fflush(stdout);
  }
  if (rank == 0 && argc > 1) ((volatile char*)recv)[bytes] = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  free(send);
  free(recv);
  MPI_Finalize();
  return 0;
}
