// Each rank says where it is and with how many others, what it got from its left neighbour and what its node sums up to.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, near, left, sum;
  char node[64];
  MPI_Comm shared;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  MPI_Comm_size(shared, &near);
  gethostname(node, sizeof node);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &left, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, shared);
  printf("rank %d of %d on %s with %d after %d sum %d\n", rank, size, node, near, left, sum);
  MPI_Comm_free(&shared);
  MPI_Finalize();
}
