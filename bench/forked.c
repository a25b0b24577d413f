/* What a fork of a process with a lot of memory costs: the fork, the first messages after it, and those that follow.
   Each rank writes 1 GiB (or argv[2] MiB) in pieces of 4 MiB, and forks a child that ends at once, or lives on until the end. Buffers of
   messages are pieces from before the fork. One line of figures: run it in turns with and without Nearfield.

     mpicc -O2 bench/forked.c -o forked && mpiexec -n 2 ./forked none|ends|lives|rewrites [MiB [alloc]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { piece = 4 << 20 };
static int rank;

/* The least and the middle of blocks of round trips, in microseconds one way. */
static int by_value(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }
static void ping_pong(char* out, char* in, int bytes, int calls, double* first, double* least, double* middle) {
  enum { blocks = 15 };
  double took[blocks];
  for (int b = 0; b < blocks; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < (b ? calls : 1); ++i) {
      if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      out[i % bytes] = (char)i;
      if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    took[b] = (MPI_Wtime() - begin) * 1e6 / 2 / (b ? calls : 1);
  }
  *first = took[0];
  qsort(took + 1, blocks - 1, sizeof *took, by_value);
  *least = took[1], *middle = took[1 + blocks / 2];
}

int main(int argc, char** argv) {
  double start = 0, t;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  start = MPI_Wtime();
  const char* what = argc > 1 ? argv[1] : "ends";
  int pieces = (argc > 2 ? atoi(argv[2]) : 1024) / 4;
  char** at = malloc(pieces * sizeof *at);
  const int ours = argc > 3; /* memory of MPI_Alloc_mem */
  for (int i = 0; i < pieces; ++i) {
    if (ours) MPI_Alloc_mem(piece, MPI_INFO_NULL, &at[i]);
    else at[i] = malloc(piece);
    memset(at[i], 1, piece);
  }
  double filled = MPI_Wtime() - start;
  double first, least, middle;
  ping_pong(at[0], at[1], 1 << 20, 20, &first, &least, &middle);  /* has been used before */
  MPI_Barrier(MPI_COMM_WORLD);
  t = MPI_Wtime();
  pid_t child = 0;
  int ends[2] = {-1, -1};
  if (strcmp(what, "none")) {
    if (pipe(ends)) return 1;
    child = fork();
    if (child == 0) {
      char c;
      close(ends[1]);
      if (!strcmp(what, "lives") && read(ends[0], &c, 1)) _exit(1);
      _exit(0);
    }
    close(ends[0]);
  }
  double forked = MPI_Wtime() - t;
  if (child && strcmp(what, "lives")) waitpid(child, NULL, 0), child = 0;
  double waited = MPI_Wtime() - t;
  MPI_Barrier(MPI_COMM_WORLD);
  t = MPI_Wtime();
  if (!strcmp(what, "rewrites"))
    for (int i = 0; i < pieces; ++i) memset(at[i], 2, piece);
  double rewritten = MPI_Wtime() - t;
  if (rank == 0) printf("%-8s fill %.0f ms fork %.1f wait %.1f rewrite %.0f |", what, filled * 1e3, forked * 1e3, waited * 1e3, rewritten * 1e3);
  static const int sizes[] = {8, 65536, 262144, 1 << 20};
  static const int calls[] = {2000, 200, 60, 20};
  for (int i = 0; i < 4; ++i) {
    ping_pong(at[0], at[1], sizes[i], calls[i], &first, &least, &middle);
    if (rank == 0) printf(" %d: %.1f first %.1f %.1f us |", sizes[i], first, least, middle);
  }
  t = MPI_Wtime();
  for (int i = 0; i < pieces; ++i) {
    if (ours) MPI_Free_mem(at[i]);
    else free(at[i]);
  }
  double freed = MPI_Wtime() - t;
  close(ends[1]);
  if (child) waitpid(child, NULL, 0);
  if (rank == 0) printf(" free %.1f ms all %.0f ms\n", freed * 1e3, (MPI_Wtime() - start) * 1e3);
  MPI_Finalize();
  return 0;
}
