/* Partitioned messages that two ranks exchange, by the host and by Nearfield in turns: microseconds of a start of both,
   all partitions touched and marked one by one, and the wait for both; the fastest of 31 loops. Plain, both columns are
   the host's.

     mpicc -O2 bench/partitioned.c -o partitioned && nearfield run mpiexec -n 2 ./partitioned */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { loops = 31, largest = 1 << 22 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double seconds(MPI_Request requests[2], int partitions, int bytes, char* out, MPI_Comm comm) {
  const int all = partitions * bytes, calls = all < 65536 ? 2000 / (1 + partitions / 8) : (8 << 20) / all + 10;
  double start = 0;
  for (int i = -calls / 10 - 1; i < calls; ++i) {
    if (i == 0) {
      MPI_Barrier(comm);
      start = MPI_Wtime();
    }
    MPI_Startall(2, requests);
    for (int p = 0; p < partitions; ++p) {
      out[p * bytes] = (char)i;
      MPI_Pready(p, requests[0]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return (MPI_Wtime() - start) / calls;
}

int main(int argc, char** argv) {
  static const int shapes[][2] = {{1, 8},    {16, 8},     {64, 8},     {1, 4096},  {16, 1024},
                                  {1, 65536}, {16, 4096}, {16, 65536}, {4, 1 << 20}};
  static const char* const values[] = {"off", "on"};
  MPI_Init(&argc, &argv);
  int size, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size != 2) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm comms[2];
  for (int by = 0; by < 2; ++by) {
    MPI_Info hint;
    MPI_Info_create(&hint);
    MPI_Info_set(hint, "nearfield", values[by]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[by]);
    MPI_Comm_set_info(comms[by], hint);
    MPI_Info_free(&hint);
  }
  char *out = malloc(largest), *in = malloc(largest);
  memset(out, 1, largest);
  memset(in, 1, largest);
  for (unsigned s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
    const int partitions = shapes[s][0], bytes = shapes[s][1];
    MPI_Request requests[2][2];
    double took[2][loops];
    for (int by = 0; by < 2; ++by) {
      MPI_Psend_init(out, partitions, bytes, MPI_BYTE, 1 - rank, 0, comms[by], MPI_INFO_NULL, &requests[by][0]);
      MPI_Precv_init(in, partitions, bytes, MPI_BYTE, 1 - rank, 0, comms[by], MPI_INFO_NULL, &requests[by][1]);
    }
    for (int i = 0; i < 2 * loops; ++i)
      took[i % 2][i / 2] = seconds(requests[i % 2], partitions, bytes, out, comms[i % 2]);
    for (int by = 0; by < 2; ++by) {
      qsort(took[by], loops, sizeof(double), compare);
      for (int k = 0; k < 2; ++k) MPI_Request_free(&requests[by][k]);
    }
    const double host = took[0][0] * 1e6, ours = took[1][0] * 1e6;
    if (rank == 0)
      printf("%3d partitions of %8d bytes: host %9.3f us, Nearfield %9.3f us, %.2f\n", partitions, bytes, host, ours,
             ours / host);
  }
  for (int by = 0; by < 2; ++by) MPI_Comm_free(&comms[by]);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
