// Each rank says where it is and with how many others, and what it got from its left neighbour.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, near, left;
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
  printf("rank %d of %d on %s with %d after %d\n", rank, size, node, near, left);
  MPI_Comm_free(&shared);
  MPI_Finalize();
}
