/* under_way ROUNDS: messages to near and far ranks are under way while their sender is in a collective that the receivers
   enter only when they have them; and receives while collectives run. Prints "good" at each rank. */
#include <string.h>

#include "nine.inc"

enum { longest = 300000 };

int main(int argc, char** argv) {
  int rank, size;
  const int rounds = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *out = malloc(longest * sizeof *out), *in = malloc(longest * sizeof *in);
  int* one = malloc(longest * sizeof *one);
  MPI_Request* requests = malloc((size_t)size * sizeof *requests);
  for (int round = 0; round < rounds; ++round) {
    const int sender = round % size, count = round / size % 2 ? longest : 100;
    /* What comes when all of them have met: matched in the middle of collectives. */
    MPI_Request late_in, late_out;
    MPI_Irecv(in, count, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &late_in);
    if (rank == sender) {
      for (int i = 0; i < longest; ++i) out[i] = round + i;
      for (int to = 0; to < size; ++to)
        MPI_Isend(out, to == rank ? 0 : count, MPI_INT, to == rank ? MPI_PROC_NULL : to, 3, MPI_COMM_WORLD, &requests[to]);
    } else {
      memset(one, 0, (size_t)count * sizeof *one);
      MPI_Recv(one, count, MPI_INT, sender, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < count; ++i) CHECK(one[i] == round + i);
      for (int i = 0; i < longest; ++i) out[i] = round + i;
    }
    nine_collectives(MPI_COMM_WORLD, round % 3 ? 50 : 5000, round);
    MPI_Isend(out, count, MPI_INT, (rank + 1 + round) % size, 7, MPI_COMM_WORLD, &late_out);
    nine_collectives(MPI_COMM_WORLD, 50, round);
    MPI_Wait(&late_in, MPI_STATUS_IGNORE);
    MPI_Wait(&late_out, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) CHECK(in[i] == round + i);
    if (rank == sender) MPI_Waitall(size, requests, MPI_STATUSES_IGNORE);
  }
  puts("good");
  MPI_Finalize();
}
