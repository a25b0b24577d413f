/* What limits and the system's calls about memory mean to a program. */
#include <sys/mman.h>
#include <sys/resource.h>
#include "scenarios.h"

enum { count = 200000 };

static void communicate(void) {
  double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < count; ++i) from[i] = i + round;
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) REQUIRE(to[i] == size * (double)(i + round));
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

SCENARIO(limits_communicate) { communicate(); }
/* Most of what a limit of 8 GiB allows. */
SCENARIO(limits_malloc) {
  communicate();
  const size_t bytes = (size_t)5000 << 20;
  char* much = malloc(bytes);
  REQUIRE(much);
  much[0] = much[bytes - 1] = 1;
  free(much);
}
SCENARIO(limits_mlockall) {
  communicate();
  char* block = malloc(64 << 20);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  communicate();
  MPI_Comm_free(&other);
  const long resident = resident_mib();
  CHECK(resident >= 64 && resident <= 1000, "%ld MiB are resident", resident);
  free(block);
  munlockall();
}

static rlim_t data_kib(void) {
  char line[200];
  unsigned long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  if (!file) abort();
  while (fgets(line, sizeof line, file) && sscanf(line, "VmData: %lu", &kib) != 1) {
  }
  fclose(file);
  return kib;
}
/* Collectives that do not wait, where the program has less than a stack's memory left. */
SCENARIO(limits_data) {
  struct rlimit before, limit;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(MPI_COMM_WORLD);
  getrlimit(RLIMIT_DATA, &before);
  limit = before;
  limit.rlim_cur = (data_kib() + 64) << 10;
  REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
  for (int round = 0; round < 4; ++round) {
    const MPI_Comm comm = round % 2 ? other : MPI_COMM_WORLD;
    int mine = rank + 1, sum = 0, largest = 0, told = rank == 0 ? 7 : 0;
    MPI_Request requests[4];
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibcast(&told, 1, MPI_INT, 0, comm, &requests[1]);
    MPI_Iallreduce(&mine, &largest, 1, MPI_INT, MPI_MAX, comm, &requests[2]);
    MPI_Ibarrier(comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(sum == size * (size + 1) / 2 && told == 7 && largest == size);
  }
  setrlimit(RLIMIT_DATA, &before);
  MPI_Comm_free(&other);
}
