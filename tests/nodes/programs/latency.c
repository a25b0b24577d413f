/* Half a round trip of rank 0 with its neighbour and with a rank of another node, in us: the receives name their
   source, are from anybody, or are requests from anybody. Ranks that do not take part sleep.   latency ITERATIONS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { blocks = 15, largest = 65536 };
static char data[largest];

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static void receive(int kind, int bytes, int peer) {
  MPI_Request request;
  if (kind == 2) {
    MPI_Irecv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data, bytes, MPI_BYTE, kind ? MPI_ANY_SOURCE : peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}
/* Sleeps until rank 0 says that it goes on. */
static void rest(void) {
  MPI_Request request;
  for (int done = MPI_Irecv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request); !done;) {
    usleep(2000);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  static const char* const kinds[] = {"named", "anybody", "request from anybody"};
  static const int sizes[] = {8, 1024, largest};
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD); /* connections take some hosts a second */
  sleep(1);
  for (int peer = 1; peer < size; ++peer) {
    if (rank != 0 && rank != peer) {
      rest();
      continue;
    }
    for (int kind = 0; kind < 3; ++kind)
      for (int s = 0; s < 3; ++s) {
        const int iterations = atoi(argv[1]) / (peer == size - 1 ? 10 : 1) / (s == 2 ? 4 : 1);
        double each[blocks];
        for (int b = 0; b < blocks; ++b) {
          const double start = MPI_Wtime();
          for (int i = 0; i < iterations; ++i) {
            if (rank == 0) MPI_Send(data, sizes[s], MPI_BYTE, peer, 0, MPI_COMM_WORLD);
            receive(kind, sizes[s], rank ? 0 : peer);
            if (rank != 0) MPI_Send(data, sizes[s], MPI_BYTE, 0, 0, MPI_COMM_WORLD);
          }
          each[b] = (MPI_Wtime() - start) / iterations / 2 * 1e6;
        }
        qsort(each, blocks, sizeof *each, compare);
        if (rank == 0) printf("%d %s %d: %.3f\n", peer, kinds[kind], sizes[s], each[blocks / 2]);
      }
    for (int other = 1; rank == 0 && other < size; ++other)
      if (other != peer) MPI_Send(NULL, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
