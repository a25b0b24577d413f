/* What two ranks have for each other, message by message: ping-pong (both ways), streams whose receiver is slower than
   its sender, windows of 64, and the collectives of few bytes that are made of messages; by the host and by Nearfield
   in turns. Nanoseconds of a call, medians of nine loops. What is sent is touched before each call.

     mpicc -O2 bench/streams.c -o streams && nearfield run mpiexec -n 2 ./streams */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { loops = 9, window = 64, largest = 4096 };

static MPI_Comm comm;
static int rank, bytes, counts[2], places[2];
static char out[window * largest], in[window * largest];

static void ping_pong(int calls) {
  for (int i = 0; i < calls; ++i) {
    if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, comm);
    MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, comm, MPI_STATUS_IGNORE);
    out[i % bytes] = (char)i;
    if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, 0, 0, comm);
  }
}
static void stream(int calls) {
  for (int i = 0; i < calls; ++i) {
    out[i % bytes] = (char)i;
    if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, comm);
    else MPI_Recv(in, bytes, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
  }
}
static void windows(int calls) {
  MPI_Request request[window];
  for (int i = 0; i < calls; i += window) {
    out[i % bytes] = (char)i;
    for (int k = 0; k < window; ++k)
      if (rank == 0) MPI_Isend(out + k * bytes, bytes, MPI_BYTE, 1, 0, comm, &request[k]);
      else MPI_Irecv(in + k * bytes, bytes, MPI_BYTE, 0, 0, comm, &request[k]);
    MPI_Waitall(window, request, MPI_STATUSES_IGNORE);
  }
}
static void gatherv(int calls) {
  for (int i = 0; i < calls; ++i) {
    out[i % bytes] = (char)i;
    MPI_Gatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, 0, comm);
  }
}
static void scatterv(int calls) {
  for (int i = 0; i < calls; ++i) {
    out[i % bytes] = (char)i;
    MPI_Scatterv(out, counts, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
  }
}
static void allgatherv(int calls) {
  for (int i = 0; i < calls; ++i) {
    out[i % bytes] = (char)i;
    MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, comm);
  }
}
static void alltoallv(int calls) {
  for (int i = 0; i < calls; ++i) {
    out[i % bytes] = (char)i;
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm);
  }
}

static const struct {
  const char* name;
  void (*run)(int calls);
} kinds[] = {{"ping-pong", ping_pong}, {"stream", stream},         {"windows", windows},    {"gatherv", gatherv},
             {"scatterv", scatterv},   {"allgatherv", allgatherv}, {"alltoallv", alltoallv}};

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  static const int sizes[] = {8, 64, 1024, largest};
  static const char* const values[] = {"off", "on"};
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  int size;
  MPI_Comm_size(comm, &size);
  if (size != 2) {
    if (rank == 0) fputs("streams: for two ranks\n", stderr);
    MPI_Abort(comm, 2);
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(rank, &own);
  sched_setaffinity(0, sizeof own, &own);
  MPI_Info hint[2];
  for (int by = 0; by < 2; ++by) {
    MPI_Info_create(&hint[by]);
    MPI_Info_set(hint[by], "nearfield", values[by]);
  }
  if (rank == 0) printf("%-10s %6s %8s %9s %5s\n", "ns", "bytes", "host", "Nearfield", "ratio");
  for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; ++s)
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
      double took[2][loops];
      bytes = counts[0] = counts[1] = places[1] = sizes[s];
      const int calls = 64 * 128;
      for (int i = 0; i < 2 * loops; ++i) {
        MPI_Comm_set_info(comm, hint[i % 2]);
        MPI_Barrier(comm);
        const double start = MPI_Wtime();
        kinds[k].run(calls);
        MPI_Barrier(comm);
        took[i % 2][i / 2] = (MPI_Wtime() - start) / calls;
      }
      for (int by = 0; by < 2; ++by) qsort(took[by], loops, sizeof(double), compare);
      const double host = took[0][loops / 2] * 1e9, ours = took[1][loops / 2] * 1e9;
      if (rank == 0) printf("%-10s %6d %8.0f %9.0f %5.2f\n", kinds[k].name, bytes, host, ours, ours / host);
    }
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
