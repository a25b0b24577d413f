/* Communicators: many of them, used by threads, between two groups, and messages under way meanwhile. */
#include "scenarios.h"

static int allreduce_works(MPI_Comm comm) {
  int r, p, sum = 0;
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &p);
  int value = r + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == p * (p + 1) / 2;
}

SCENARIO(communicators_many) {
  enum { alive = 1000, freed = 5000 };
  static MPI_Comm comms[alive];
  for (int i = 0; i < alive; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CHECK(allreduce_works(comms[i]));
  }
  for (int i = 0; i < alive; ++i) {
    CHECK(allreduce_works(comms[i]));
    MPI_Comm_free(&comms[i]);
  }
  long before = 0, after = 0;
  for (int i = 0; i < freed; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(allreduce_works(comm));
    MPI_Comm_free(&comm);
    if (i == 100 || i == freed - 1) {
      FILE* status = fopen("/proc/self/status", "r");
      char line[256];
      while (fgets(line, sizeof line, status))
        if (!strncmp(line, "RssShmem:", 9)) *(i == 100 ? &before : &after) = atol(line + 9);
      fclose(status);
    }
  }
  CHECK(after <= before + 4096, "shared memory grew from %ld to %ld KiB", before, after);
}

static void* thread(void* argument) {
  MPI_Comm comm = *(MPI_Comm*)argument;
  long good = 1;
  static __thread double send[20000], recv[20000];
  for (int i = 0; i < 300; ++i) {
    int n = i % 10 ? 10 : 20000;
    for (int k = 0; k < n; ++k) send[k] = i + k;
    MPI_Allreduce(send, recv, n, MPI_DOUBLE, MPI_SUM, comm);
    for (int k = 0; k < n; ++k) good &= recv[k] == size * (double)(i + k);
  }
  return (void*)good;
}

SCENARIO(communicators_threads) {
  MPI_Comm comms[2];
  pthread_t ids[2];
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 2; ++i) pthread_create(&ids[i], NULL, thread, &comms[i]);
  for (int i = 0; i < 2; ++i) {
    void* result;
    pthread_join(ids[i], &result);
    CHECK(result == (void*)1);
    MPI_Comm_free(&comms[i]);
  }
}

/* A large message of the host under way while the ranks meet in collectives. */
SCENARIO(communicators_progress) {
  int n = 8 << 20;
  char* data = malloc(n);
  MPI_Request request;
  if (rank == 0) {
    memset(data, 7, n);
    MPI_Isend(data, n, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank == 1) MPI_Recv(data, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(rank != 1 || (data[0] == 7 && data[n - 1] == 7));
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  CHECK(allreduce_works(MPI_COMM_WORLD));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(data);
}

SCENARIO(communicators_inter) {
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
  int value = rank % 2 ? 100 : 1, sum = 0, there;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Comm_remote_size(inter, &there);
  CHECK(sum == there * (rank % 2 ? 1 : 100));
  MPI_Comm_free(&inter);
  CHECK(allreduce_works(half));
  MPI_Comm_free(&half);
}
