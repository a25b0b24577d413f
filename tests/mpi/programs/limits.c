/* What limits and the system's calls about memory mean to a program: its argument says which. Prints "good". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { count = 200000 };

static void communicate(void) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < count; ++i) from[i] = i + round;
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i)
      if (to[i] != size * (double)(i + round)) abort();
  }
  free(from);
  free(to);
}

static long resident_mib(void) {
  long total, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) abort();
  fclose(file);
  return resident >> 8;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  communicate();
  int good = 1;
  if (!strcmp(what, "malloc")) { /* most of what the limit allows */
    char* much = malloc((size_t)5000 << 20);
    good = much != NULL;
    if (much) much[0] = much[((size_t)5000 << 20) - 1] = 1;
    free(much);
  }
  if (!strcmp(what, "mlockall")) {
    char* block = malloc(64 << 20);
    MPI_Barrier(MPI_COMM_WORLD);
    good = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    communicate();
    MPI_Comm_free(&other);
    const long resident = resident_mib();
    if (resident < 64 || resident > 1000) good = 0, fprintf(stderr, "%ld MiB are resident\n", resident);
    free(block);
    munlockall();
  }
  int all = 0, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) puts(all ? "good" : "bad");
  MPI_Finalize();
  return !all;
}
