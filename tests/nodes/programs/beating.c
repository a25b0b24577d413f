// beating SECONDS: all ranks meet again and again; the first says when that begins and what the longest pause was.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, go = 1;
  double longest = 0, seconds = atof(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("begun\n"), fflush(stdout);
  double begin = MPI_Wtime(), last = begin;
  while (go) {
    MPI_Barrier(MPI_COMM_WORLD);
    double now = MPI_Wtime();
    if (now - last > longest) longest = now - last;
    last = now;
    go = now - begin < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("longest pause: %.3f s\n", longest);
  MPI_Finalize();
}
