/* Messages, collectives and a shared window of all ranks, each checked; then how long they take. contained [ELEMENTS]
   Prints "good" from rank 0, and "latency US bandwidth MB/S allreduce US": of messages of 8 bytes and 1 MiB between the first
   two ranks, and of an allreduce of 1 MiB. ELEMENTS: of the longest, default 131072 (1 MiB). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, wrong;

static void check(int fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  wrong = 1;
}

/* To the right, from the left. */
static void around(double* from, double* to, int n) {
  const int left = (rank + size - 1) % size;
  for (int i = 0; i < n; ++i) from[i] = rank + i, to[i] = -1;
  MPI_Sendrecv(from, n, MPI_DOUBLE, (rank + 1) % size, 0, to, n, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int fine = 1;
  for (int i = 0; i < n; ++i) fine &= to[i] == left + i;
  check(fine, "a message");
  MPI_Allreduce(from, to, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  fine = 1;
  for (int i = 0; i < n; ++i) fine &= to[i] == size * (size - 1) / 2 + size * i;
  check(fine, "an allreduce");
}

static void share(void) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int here, others;
  MPI_Comm_rank(node, &here);
  MPI_Comm_size(node, &others);
  MPI_Win win;
  int *own, unit, sum = 0;
  MPI_Aint bytes;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &win);
  MPI_Win_fence(0, win);
  *own = here + 1;
  MPI_Win_fence(0, win);
  for (int other = 0; other < others; ++other) {
    int* its;
    MPI_Win_shared_query(win, other, &bytes, &unit, &its);
    sum += *its;
  }
  check(sum == others * (others + 1) / 2, "a shared window");
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
}

/* Microseconds of a message there or back. */
static double message(double* buffer, int n, int loops) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < loops && rank < 2; ++i) {
    if (rank == i % 2) MPI_Send(buffer, n, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD);
    else MPI_Recv(buffer, n, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return (MPI_Wtime() - begin) / loops * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int most = argc > 1 ? atoi(argv[1]) : 1 << 17;
  double *from = malloc(most * sizeof *from), *to = malloc(most * sizeof *to);
  for (int n = 1; n <= most; n *= 8) around(from, to, n);
  around(from, to, most);
  share();
  message(from, 1, 1000);
  const double latency = message(from, 1, 2000), long_one = message(from, most, 100);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < 50; ++i) MPI_Allreduce(from, to, most, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double reducing = (MPI_Wtime() - begin) / 50 * 1e6;
  int any = 1;
  MPI_Reduce(&wrong, &any, 1, MPI_INT, MPI_LOR, 0, MPI_COMM_WORLD);
  if (rank == 0 && !any)
    printf("good\nlatency %.2f bandwidth %.0f allreduce %.0f\n", latency, most * sizeof(double) / long_one, reducing);
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
