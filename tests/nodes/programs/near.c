/* Messages of every kind in communicators that lie on one node, beside those that span nodes; of all origins. Prints
   "good" at each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                 \
  do {                                                                              \
    if (!(what)) {                                                                  \
      fprintf(stderr, "rank %d, line %d: %s\n", world_rank, __LINE__, #what);       \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                 \
    }                                                                               \
  } while (0)

static int world_rank;

/* Round the ring, in every way of receiving, short and long. */
static void ring(MPI_Comm comm, int tag) {
  static const int lengths[] = {1, 100, 5000, 300000};
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int k = 0; k < 16; ++k) {
    const int count = lengths[k % 4], wild = k / 4 % 2, late = k / 8;
    int *out = malloc((size_t)count * sizeof *out), *in = malloc((size_t)count * sizeof *in);
    for (int i = 0; i < count; ++i) out[i] = rank * 1000 + k + i, in[i] = -1;
    MPI_Request requests[2];
    MPI_Status status;
    if (late) {
      MPI_Message message;
      MPI_Isend(out, count, MPI_INT, to, tag + k, comm, &requests[0]);
      MPI_Mprobe(wild ? MPI_ANY_SOURCE : from, tag + k, comm, &message, &status);
      MPI_Mrecv(in, count, MPI_INT, &message, &status);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(in, count, MPI_INT, wild ? MPI_ANY_SOURCE : from, tag + k, comm, &requests[0]);
      MPI_Barrier(comm);
      MPI_Issend(out, count, MPI_INT, to, tag + k, comm, &requests[1]);
      MPI_Wait(&requests[0], &status);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag + k);
    for (int i = 0; i < count; ++i) CHECK(in[i] == from * 1000 + k + i);
    free(in);
    free(out);
  }
}

int main(int argc, char **argv) {
  int size;
  MPI_Comm shared, dup, odd, group_comm, mixed, back;
  MPI_Group group;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  ring(MPI_COMM_WORLD, 0);
  ring(shared, 100);
  ring(MPI_COMM_SELF, 200);
  /* Out of a communicator that spans nodes, which has carried messages: a part of it that does not. */
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &mixed);
  ring(mixed, 300);
  MPI_Comm_split_type(mixed, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &back);
  ring(back, 400);
  MPI_Comm_dup(shared, &dup);
  ring(dup, 500);
  MPI_Comm_split(dup, world_rank % 2, 0, &odd);
  ring(odd, 600);
  MPI_Comm_group(shared, &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &group_comm);
  ring(group_comm, 700);
  ring(shared, 800);
  MPI_Group_free(&group);
  MPI_Comm *all[] = {&shared, &dup, &odd, &group_comm, &mixed, &back};
  for (int i = 0; i < 6; ++i) MPI_Comm_free(all[i]);
  puts("good");
  MPI_Finalize();
}
