/* Messages between buffers that peers cannot map: static memory, by default, or malloc's where another allocator is before the heap
   (argv[1] = malloc). Ping-pong and windows of 8, of buffers that are used again and of buffers that nobody has touched since, and
   both ways at once. Least and tenth part of single rounds, nanoseconds a message, which other load disturbs least: run it in turns
   with and without Nearfield.

     mpicc -O2 bench/unreachable.c -o unreachable && mpiexec -n 2 ./unreachable [malloc] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rounds = 150, largest = 1 << 20, window = 8, spread = 24 };
static char fixed_out[(size_t)largest * spread], fixed_in[(size_t)largest * spread];
static char *out, *in;
static int rank, place;

static int by_value(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }

static void ping_pong(int n, int calls, int fresh, int touch) {
  for (int i = 0; i < calls; ++i) {
    char *from = out + (fresh ? (size_t)((i + place) % spread) * largest : 0), *to = in + (fresh ? (size_t)((i + place) % spread) * largest : 0);
    if (touch) memset(from, i, (size_t)n);
    if (rank == 0) MPI_Send(from, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(to, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (touch) from[0] = (char)(from[0] + to[n / 2]);
    if (rank == 1) MPI_Send(from, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}
static void windows(int n, int calls, int fresh, int touch) {
  MPI_Request request[window];
  (void)fresh;
  for (int i = 0; i < calls; i += window) {
    for (int k = 0; k < window; ++k) {
      char *from = out + (size_t)k * largest, *to = in + (size_t)k * largest;
      if (touch && rank == 0) memset(from, i, (size_t)n);
      if (rank == 0) MPI_Isend(from, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[k]);
      else MPI_Irecv(to, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[k]);
    }
    MPI_Waitall(window, request, MPI_STATUSES_IGNORE);
    char token = 0;
    if (rank == 0) MPI_Recv(&token, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(&token, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
}
static void both_ways(int n, int calls, int fresh, int touch) {
  for (int i = 0; i < calls; ++i) {
    char *from = out + (fresh ? (size_t)((i + place) % spread) * largest : 0), *to = in + (fresh ? (size_t)((i + place) % spread) * largest : 0);
    if (touch) memset(from, i, (size_t)n);
    MPI_Sendrecv(from, n, MPI_BYTE, 1 - rank, 0, to, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void measure(const char* name, void (*body)(int, int, int, int), int n, int fresh, int touch) {
  static double took[rounds];
  const int calls = body == windows ? window : 1, most = n <= 131072 ? rounds : rounds / 3;
  body(n, spread, fresh, touch);
  for (int b = 0; b < most; ++b) {
    place = b % spread;
    double begin = MPI_Wtime();
    body(n, calls, fresh, touch);
    took[b] = (MPI_Wtime() - begin) * 1e9 / calls / (body == ping_pong ? 2 : 1);
  }
  qsort(took, (size_t)most, sizeof *took, by_value);
  if (rank == 0)
    for (int k = 0; k < 2; ++k)
      printf("%s %s %s %d %s %.0f\n", name, fresh ? "spread" : "same", touch ? "touched" : "untouched", n, k ? "tenth" : "least",
             took[k ? most / 10 : 0]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = fixed_out, in = fixed_in;
  if (argc > 1) out = malloc(sizeof fixed_out), in = malloc(sizeof fixed_in);
  memset(out, 1, sizeof fixed_out);
  memset(in, 1, sizeof fixed_in);
  static const int sizes[] = {65536, 262144, 1 << 20};
  for (int s = 0; s < 3; ++s)
    for (int touch = 0; touch < 2; ++touch) {
      for (int fresh = 0; fresh < 2; ++fresh) measure("ping_pong", ping_pong, sizes[s], fresh, touch);
      measure("windows", windows, sizes[s], 0, touch);
      measure("both_ways", both_ways, sizes[s], 0, touch);
    }
  MPI_Finalize();
  return 0;
}
