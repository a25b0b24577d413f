/* Collectives in a loop until a rank is killed. Prints each rank's process. Arguments: seconds, and a file in place of
   standard error, which launchers stop to forward when a rank dies. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 2 && !freopen(argv[2], "a", stderr)) return 1;
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("rank %d process %d\n", rank, (int)getpid());
  fflush(stdout);
  double seconds = argc > 1 ? atof(argv[1]) : 30, start = MPI_Wtime(), value = 1, sum = 0;
  static double big[200000], result[200000];
  int go = 1;
  while (go) {
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(big, result, 200000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    go = MPI_Wtime() - start < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
