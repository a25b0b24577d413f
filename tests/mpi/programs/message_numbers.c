/* A matched message as an integer, which Fortran holds, and back. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, value = 7, got = 0;
  MPI_Message message;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Message same = MPI_Message_fromint(MPI_Message_toint(message));
    if (same != MPI_MESSAGE_NULL) MPI_Mrecv(&got, 1, MPI_INT, &same, MPI_STATUS_IGNORE);
    printf(got == 7 ? "good\n" : "another message\n");
  }
  MPI_Finalize();
  return 0;
}
