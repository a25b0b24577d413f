/* Neighbourhood all-to-all on a ring of ranks, blocking and non-blocking, by the host and by Nearfield in turns:
   microseconds of a call, medians of nine loops. What is sent is touched before each call.

     mpicc -O2 bench/neighbors.c -o neighbors && nearfield run mpiexec -n 2 ./neighbors */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { loops = 9, largest = 1 << 20 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double seconds(MPI_Comm ring, int overlaps, int bytes, char* out, char* in) {
  const int calls = bytes < 65536 ? 3000 : (8 << 20) / bytes;
  MPI_Barrier(ring);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    out[i % 64] = (char)i;
    if (!overlaps) {
      MPI_Neighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, ring);
    } else {
      MPI_Request request;
      MPI_Ineighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, ring, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  return (MPI_Wtime() - start) / calls;
}

int main(int argc, char** argv) {
  static const int sizes[] = {8, 1024, 4096, 16384, 65536, largest};
  static const char* const values[] = {"off", "on"};
  MPI_Init(&argc, &argv);
  int size, rank, periodic = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Info hint[2];
  for (int by = 0; by < 2; ++by) {
    MPI_Info_create(&hint[by]);
    MPI_Info_set(hint[by], "nearfield", values[by]);
  }
  char *out = malloc(2 * largest), *in = malloc(2 * largest);
  memset(out, 1, 2 * largest);
  memset(in, 1, 2 * largest);
  for (int overlaps = 0; overlaps < 2; ++overlaps)
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
      double took[2][loops];
      for (int i = 0; i < 2 * loops; ++i) {
        MPI_Comm_set_info(ring, hint[i % 2]);
        took[i % 2][i / 2] = seconds(ring, overlaps, sizes[s], out, in);
      }
      for (int by = 0; by < 2; ++by) qsort(took[by], loops, sizeof(double), compare);
      const double host = took[0][loops / 2] * 1e6, ours = took[1][loops / 2] * 1e6;
      if (rank == 0)
        printf("%-26s %8d bytes: host %8.3f us, Nearfield %8.3f us, %.2f\n",
               overlaps ? "MPI_Ineighbor_alltoall" : "MPI_Neighbor_alltoall", sizes[s], host, ours, ours / host);
    }
  for (int by = 0; by < 2; ++by) MPI_Info_free(&hint[by]);
  MPI_Comm_free(&ring);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
