/* Spawns two processes without Nearfield and calls collectives and messages on the merged communicator. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Comm parent, between, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  const int child = parent != MPI_COMM_NULL;
  if (!child) {
    char* arguments[] = {"-u", "LD_PRELOAD", argv[0], NULL};
    MPI_Comm_spawn("/usr/bin/env", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
  } else {
    between = parent;
  }
  MPI_Intercomm_merge(between, child, &all);
  int rank, size, sum = 0, good = 1;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  for (int i = 0; i < 10; ++i) {
    int value = rank + i, from = -1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
    good &= sum == size * (size - 1) / 2 + size * i;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &from, 1, MPI_INT, (rank + size - 1) % size, 3, all,
                 MPI_STATUS_IGNORE);
    good &= from == (rank + size - 1) % size;
    MPI_Barrier(all);
  }
  MPI_Comm dup;
  MPI_Comm_dup(all, &dup);
  MPI_Bcast(&good, 1, MPI_INT, size - 1, dup);
  if (rank == 0) printf(good ? "good\n" : "wrong\n");
  MPI_Comm_free(&dup);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
  MPI_Finalize();
  return 0;
}
