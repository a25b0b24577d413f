/* Sums by a communicator with the hint nearfield_reproducible have the bits of the sum in rank order. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

/* Of `n` numbers of each rank, by the hint and by hand. */
static void compare(MPI_Comm comm, int n) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  double *mine = malloc(8 * n), *all = malloc(8l * n * size), *sum = malloc(8 * n), *want = malloc(8 * n);
  for (int i = 0; i < n; ++i) mine[i] = 1.0 / (1 + (i * 7919 + rank * 104729) % 100003) - 0.3 * rank;
  MPI_Allreduce(mine, sum, n, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Allgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, comm);
  memcpy(want, all, 8 * n);
  for (int r = 1; r < size; ++r)
    for (int i = 0; i < n; ++i) want[i] += all[r * n + i];
  wrong += memcmp(sum, want, 8 * n) != 0;
  free(mine);
  free(all);
  free(sum);
  free(want);
}

int main(int argc, char **argv) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Init(&argc, &argv);
  for (int used_before = 0; used_before < 2; ++used_before) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (used_before) MPI_Barrier(comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "nearfield_reproducible", "on");
    MPI_Comm_set_info(comm, info);
    for (int i = 0; i < 3; ++i)
      for (int n = 1; n < 100000; n = n * 11 + 2) compare(comm, n);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
  }
  puts(wrong ? "wrong" : "good");
  MPI_Finalize();
}
