// internode_traffic BYTES: the first rank sends as much to every other, one after the other, and says what left its node meanwhile
// (the least of several times: where acknowledgements are late TCP sends again), and how long 8 bytes need to the last
// rank, half of there and back.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "traffic.inc"

static char* buffer;

// There and back, so that nothing is under way afterwards but acknowledgements.
static void exchange(int rank, int peer, int bytes) {
  if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
  if (rank == peer) MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == peer) MPI_Send(buffer, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(buffer, 8, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank, size, bytes = atoi(argv[1]), times = 50;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  buffer = calloc(bytes, 1);
  for (int peer = 1; peer < size; ++peer) exchange(rank, peer, bytes);  // connects them
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(100000);
  for (int peer = 1; peer < size; ++peer) {
    long long bytes_sent = -1, packets = 0;
    for (int i = 0; i < 5; ++i) {
      struct traffic before = traffic_here();
      exchange(rank, peer, bytes);
      struct traffic after = traffic_here();
      if (bytes_sent < 0 || after.sent_bytes - before.sent_bytes < bytes_sent) {
        bytes_sent = after.sent_bytes - before.sent_bytes;
        packets = after.sent_packets - before.sent_packets;
      }
    }
    if (rank == 0) printf("to %d: %lld bytes in %lld packets\n", peer, bytes_sent, packets);
  }
  double start = MPI_Wtime();
  for (int i = 0; i < times; ++i) exchange(rank, size - 1, 8);
  if (rank == 0) printf("latency: %.1f us\n", (MPI_Wtime() - start) / times / 2 * 1e6);
  MPI_Finalize();
}
