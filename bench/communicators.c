/* What it costs to make communicators, which is the host's work: microseconds of a call, the mean, of the slowest rank.

       mpicc -O2 bench/communicators.c -o communicators
       mpiexec -n 5 communicators [CALLS]

   `cart` is what mpi4py-fft's suite does all the time: a grid, its rows, an alltoall in them, all freed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void dup(void) {
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_free(&made);
}

static void split(void) {
  MPI_Comm made;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank & 1, rank, &made);
  MPI_Comm_free(&made);
}

static void cart(void) {
  enum { most = 4096 };
  static int out[most], in[most];
  int size, dims[2] = {0, 1}, periods[2] = {0, 0};
  MPI_Comm grid, row;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  dims[0] = size;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Cart_sub(grid, (int[]){1, 0}, &row);
  if (size <= most / 16) MPI_Alltoall(out, 16, MPI_INT, in, 16, MPI_INT, row);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*call)(void);
  } calls[] = {{"dup", dup}, {"split", split}, {"cart", cart}};
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? atoi(argv[1]) : 300;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    for (int k = 0; k < 10; ++k) calls[i].call();
    MPI_Barrier(MPI_COMM_WORLD);
    double took = -MPI_Wtime(), slowest;
    for (int k = 0; k < n; ++k) calls[i].call();
    took += MPI_Wtime();
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-6s %9.1f us\n", calls[i].name, slowest / n * 1e6);
  }
  MPI_Finalize();
  return 0;
}
