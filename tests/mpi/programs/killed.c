/* What goes on until somebody is killed. Each rank prints "rank N process PID" first.

     killed collectives|messages|partitioned|lock|ahead|buffered [FILE]

   Launchers stop to forward what is printed when a rank dies: the file is in place of standard error. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void tell(void) {
  printf("rank %d process %d\n", rank, (int)getpid());
  fflush(stdout);
}

static void collectives(void) {
  static double big[200000], result[200000];
  double value = 1, sum = 0;
  for (const double start = MPI_Wtime(); MPI_Wtime() - start < 60;) {
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(big, result, 200000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

/* Large ones between pairs, so that somebody can be killed in one. */
static void messages(void) {
  enum { n = 64 << 20 };
  char* const buffer = malloc(n);
  memset(buffer, rank, n);
  for (;;)
    if (rank % 2 == 0) MPI_Send(buffer, n, MPI_BYTE, rank ^ 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(buffer, n, MPI_BYTE, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Of three ranks all wait for rank 1. */
static void partitioned(void) {
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
  static int data[1 << 20];
  MPI_Request request;
  if (rank == 1) sleep(60);
  if (rank == 0) MPI_Precv_init(data, 4, 1 << 18, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Psend_init(data, 4, 1 << 18, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  if (rank == 2) MPI_Pready_range(0, 2, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
}

/* Rank 1 holds an exclusive lock, the others wait for it. */
static void lock(void) {
  int64_t *base, value = 1;
  MPI_Win win;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  tell();
  if (rank == 1) sleep(60);
  else
    MPI_Win_lock(rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win),
        fprintf(stderr, "rank %d got the lock\n", rank);
}

/* Rank 1 never comes to what the others have left behind. */
static void ahead(void) {
  static char own[4000], all[64 * 4000];
  if (rank == 1) sleep(60);
  for (int i = 0; i < 40; ++i) MPI_Gather(own, 4000, MPI_CHAR, all, 4000, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Nor to what they send to it by buffers. */
static void buffered(void) {
  enum { n = 1 << 20 };
  static char data[n];
  char* room = malloc(n + MPI_BSEND_OVERHEAD);
  int size;
  if (rank == 1) sleep(60);
  MPI_Buffer_attach(room, n + MPI_BSEND_OVERHEAD);
  MPI_Bsend(data, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  MPI_Buffer_detach(&room, &size);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (argc > 2 && !freopen(argv[2], "a", stderr)) return 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(what, "lock")) tell();
  if (!strcmp(what, "collectives")) collectives();
  if (!strcmp(what, "messages")) messages();
  if (!strcmp(what, "partitioned")) partitioned();
  if (!strcmp(what, "lock")) lock();
  if (!strcmp(what, "ahead")) ahead();
  if (!strcmp(what, "buffered")) buffered();
  MPI_Finalize();
  return 0;
}
