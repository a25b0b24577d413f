/* A stream whose sender is ahead of its receiver: 1000 messages of 8 bytes, received one by one once all have been
 * sent. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, good = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) usleep(500000);
  for (long i = 0; i < 1000; ++i) {
    long got = i;
    if (rank == 0) MPI_Send(&i, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(&got, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    good &= got == i;
  }
  /* An answer, for the row of statistics, which ranks have that send. */
  if (rank == 1) MPI_Send(&good, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  else MPI_Recv(&good, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0 && good) puts("good");
  MPI_Finalize();
}
