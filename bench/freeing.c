/* Freeing communicators while many requests are outstanding: argv[1] receives (100,000) on MPI_COMM_WORLD, and one on each of 100
   duplicates, which are freed. Microseconds a free and nanoseconds a receive: run it in turns with and without Nearfield.

     mpicc -O2 bench/freeing.c -o freeing && mpiexec -n 2 ./freeing */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { freed = 100 };

int main(int argc, char** argv) {
  int rank, most = argc > 1 ? atoi(argv[1]) : 100000;
  static int in[freed];
  MPI_Comm comm[freed];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request* request = malloc((size_t)(most + freed) * sizeof *request);
  int* data = malloc((size_t)most * sizeof *data);
  for (int many = 10; many <= most; many *= 100) {
    double least_free = 1e9, least_post = 1e9;
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < freed; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
      double begin = MPI_Wtime();
      for (int i = 0; i < many; ++i) MPI_Irecv(&data[i], 1, MPI_INT, 1 - rank, i % 30000, MPI_COMM_WORLD, &request[i]);
      double posted = (MPI_Wtime() - begin) / many * 1e9;
      for (int i = 0; i < freed; ++i) MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, 0, comm[i], &request[many + i]);
      for (int i = 0; i < freed; ++i) MPI_Send(&rank, 1, MPI_INT, 1 - rank, 0, comm[i]);
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
      for (int i = 0; i < freed; ++i) MPI_Comm_free(&comm[i]);
      double took = (MPI_Wtime() - begin) / freed * 1e6;
      MPI_Waitall(freed, request + many, MPI_STATUSES_IGNORE);
      for (int i = 0; i < many; ++i) MPI_Send(&rank, 1, MPI_INT, 1 - rank, i % 30000, MPI_COMM_WORLD);
      MPI_Waitall(many, request, MPI_STATUSES_IGNORE);
      if (took < least_free) least_free = took;
      if (posted < least_post) least_post = posted;
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) printf("outstanding %d free_us %.2f\noutstanding %d receive_ns %.0f\n", many, least_free, many, least_post);
  }
  MPI_Finalize();
  return 0;
}
