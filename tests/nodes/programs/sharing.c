/* Ranks of a node call each other for so many milliseconds. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  const double end = MPI_Wtime() + (argc > 1 ? atoi(argv[1]) : 1000) / 1e3;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int over = 0; !over;) {
    const int ours = MPI_Wtime() > end;
    MPI_Allreduce(&ours, &over, 1, MPI_INT, MPI_MAX, node);
  }
  MPI_Comm_free(&node);
  MPI_Finalize();
}
