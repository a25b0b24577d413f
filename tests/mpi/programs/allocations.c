/* Requests, once all has been used, allocate nothing. A program of its own: it replaces malloc. Two ranks; "good" on
 * rank 0. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts what is allocated, by whomever. */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);
static volatile int counting;
static volatile long allocations;
void* malloc(size_t bytes) { return allocations += counting, __libc_malloc(bytes); }
void* calloc(size_t n, size_t bytes) { return allocations += counting, __libc_calloc(n, bytes); }
void* realloc(void* old, size_t bytes) { return allocations += counting, __libc_realloc(old, bytes); }
void* aligned_alloc(size_t to, size_t bytes) { return allocations += counting, __libc_memalign(to, bytes); }
void* memalign(size_t to, size_t bytes) { return allocations += counting, __libc_memalign(to, bytes); }
int posix_memalign(void** at, size_t to, size_t bytes) { return !(*at = memalign(to, bytes)); }
void free(void* at) { __libc_free(at); }

static int rank, to, from;
static MPI_Comm of_host; /* its messages are the host's */

static int memory(void) {
  enum { n = 64 };
  MPI_Request r[n], tried[n];
  MPI_Status statuses[n], status;
  int good = 1, value[n], index, flag, some, indices[n];
  long before[7] = {0};
  for (int round = 0; round < 300; ++round) {
    const int how = round % 7;
    if (round == 70) counting = 1;
    const long then = allocations;
    const int hosts_too = how == 6;
    for (int i = 0; i < n / 2; ++i) MPI_Irecv(&value[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &r[i]);
    if (hosts_too) MPI_Recv_init(&value[0], 1, MPI_INT, from, 0, of_host, &tried[0]);
    for (int k = 0; k < 50; ++k) {
      MPI_Test(&r[0], &flag, &status);
      good &= !flag;
      MPI_Testall(n / 2, r, &flag, statuses);
      MPI_Testany(n / 2, r, &index, &flag, &status);
      MPI_Testsome(n / 2, r, &some, indices, statuses);
      good &= !flag && some == 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &status);
      good &= !flag;
    }
    MPI_Barrier(MPI_COMM_WORLD); /* all receives are posted */
    for (int i = 0; i < n / 2; ++i) MPI_Isend(&rank, 1, MPI_INT, to, i, MPI_COMM_WORLD, &r[n / 2 + i]);
    if (how == 0) MPI_Waitall(n, r, statuses);
    if (how == 1)
      for (flag = 0; !flag;) MPI_Testall(n, r, &flag, statuses);
    if (how == 2)
      for (int k = 0; k < n; ++k) MPI_Waitany(n, r, &index, &status);
    if (how == 3)
      for (int k = 0; k < n; k += flag) MPI_Testany(n, r, &index, &flag, &status);
    if (how == 4)
      for (int k = 0; k < n; k += some) MPI_Waitsome(n, r, &some, indices, statuses);
    if (how == 5)
      for (int k = 0; k < n; ++k) MPI_Wait(&r[k], &status);
    if (hosts_too) { /* one of the host's among ours */
      MPI_Wait(&r[n - 1], &status);
      r[n - 1] = tried[0];
      const int counted = counting;
      MPI_Waitall(n, r, statuses);
      counting = 0;
      MPI_Request_free(&r[n - 1]);
      counting = counted;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Messages that come before their receives. */
    for (int i = 0; i < 8; ++i) MPI_Send(&rank, 1, MPI_INT, to, i, MPI_COMM_WORLD);
    for (int i = 8; i-- > 0;) {
      MPI_Probe(from, i, MPI_COMM_WORLD, &status);
      MPI_Recv(&value[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!hosts_too) before[how] += allocations - then;
  }
  counting = 0;
  for (int how = 0; how < 6; ++how)
    if (before[how]) fprintf(stderr, "rank %d: %ld allocations in way %d\n", rank, before[how], how), good = 0;
  return good;
}

int main(int argc, char** argv) {
  MPI_Info info;
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Comm_dup(MPI_COMM_WORLD, &of_host);
  MPI_Info_create(&info);
  MPI_Info_set(info, "nearfield", "off");
  MPI_Comm_set_info(of_host, info);
  MPI_Info_free(&info);
  int good = memory(), all = 0;
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", all ? "good" : "bad");
  MPI_Comm_free(&of_host);
  MPI_Finalize();
  return !all;
}
