/* Memory of MPI_Alloc_mem and MPI_Win_allocate comes when it is touched, and what is freed is used again. */
#include "scenarios.h"

#include <sys/resource.h>

/* Pages that the program has made so far. */
static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/* KiB of shared memory that are mapped here. */
static long resident(void) {
  FILE* const file = fopen("/proc/self/status", "r");
  char line[200];
  long kib = -1;
  while (file && fgets(line, sizeof line, file)) sscanf(line, "RssShmem: %ld", &kib);
  if (file) fclose(file);
  return kib;
}

enum { mib = 1 << 20 };

SCENARIO(untouched_memory) {
  (void)argc, (void)argv;
  const MPI_Aint large = 2048L * mib;
  MPI_Barrier(MPI_COMM_WORLD);
  const long before = resident();
  unsigned char *in_window = NULL, *alone = NULL;
  MPI_Win win;
  MPI_Win_allocate(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &in_window, &win);
  MPI_Alloc_mem(large / 2, MPI_INFO_NULL, &alone);
  for (MPI_Aint i = 0; i < large; i += large / 64) REQUIRE(in_window[i] == 0, "at %ld", (long)i);
  memset(in_window + large / 2, 7, mib);
  memset(alone, 7, mib);
  CHECK(resident() - before < 64 * 1024);
  MPI_Free_mem(alone);
  MPI_Win_free(&win);
}

SCENARIO(untouched_again) {
  (void)argc, (void)argv;
  long first = 0;
  for (int round = 0; round < 4; ++round) {
    const long before = faults();
    unsigned char *large = NULL, *small = NULL;
    MPI_Alloc_mem(40 * mib, MPI_INFO_NULL, &large);
    MPI_Alloc_mem(100, MPI_INFO_NULL, &small);
    memset(large, round, 40 * mib);
    memset(small, round, 100);
    MPI_Free_mem(large);
    MPI_Free_mem(small);
    const long made = faults() - before;
    if (round == 0) first = made;
    else REQUIRE(made < 200, "%ld pages, at first %ld", made, first);
  }
}

/* Windows are zero, whoever had the memory before. */
SCENARIO(untouched_is_zero) {
  (void)argc, (void)argv;
  for (int round = 0; round < 40; ++round) {
    const int bytes = round % 4 ? 1000 + round * 7919 : 3 * mib;
    unsigned char *memory = NULL, *dirty = NULL;
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &dirty);
    memset(dirty, 0xa5, (size_t)bytes);
    MPI_Free_mem(dirty);
    MPI_Win win;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < bytes; ++i) REQUIRE(memory[i] == 0, "round %d, byte %d", round, i);
    memset(memory, 0x5a, (size_t)bytes);
    MPI_Win_free(&win);
  }
}
