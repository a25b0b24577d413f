/* Memory of MPI_Alloc_mem and MPI_Win_allocate comes when it is touched. */
#include "scenarios.h"

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
