/* Communicators: many of them, and used by threads. */
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
