/* Allocates 3 MiB with each hint that is given as KEY=VALUE[+KEY=VALUE], and says what came of it; and whether hwloc is
   loaded at the end. */
#include "scenarios.h"

enum { bytes = 3 << 20, message = 5000, rounds = 40 };

static const char* outcome(int code) {
  if (code == MPI_SUCCESS) return "there";
  const int class = class_of(code);
  return class == MPI_ERR_NO_MEM ? "MPI_ERR_NO_MEM" : class == MPI_ERR_INFO_VALUE ? "MPI_ERR_INFO_VALUE" : "?";
}

static int maps_name(const char* name) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, name) != NULL;
  if (maps) fclose(maps);
  return found;
}

static MPI_Info read_hints(const char* text) {
  MPI_Info info;
  MPI_Info_create(&info);
  char* const copy = strdup(text);
  char* rest = NULL;
  for (char* hint = strtok_r(copy, "+", &rest); hint; hint = strtok_r(NULL, "+", &rest)) {
    char* const value = strchr(hint, '=');
    *value = 0;
    MPI_Info_set(info, hint, value + 1);
  }
  free(copy);
  return info;
}

SCENARIO(placement) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 1; i < argc; ++i) {
    MPI_Info info = read_hints(argv[i]);
    double* memory = NULL;
    const int code = MPI_Alloc_mem(bytes, info, &memory);
    MPI_Info_free(&info);
    if (rank == 0) printf("%s: %s\n", argv[i], outcome(code));
    if (code != MPI_SUCCESS) continue;
    const int count = bytes / sizeof(double) / 2;
    for (int k = 0; k < count; ++k) memory[k] = rank + k;
    MPI_Allreduce(memory, memory + count, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < count; ++k) REQUIRE(memory[count + k] == (double)size * k + size * (size - 1) / 2);
    MPI_Free_mem(memory);
  }
  /* Fastboxes and copy buffers. */
  char out[message] = {0}, in[message];
  for (int i = 0; i < rounds; ++i)
    for (int length = 50; length <= message; length *= 100)
      MPI_Sendrecv(out, length, MPI_BYTE, (rank + 1) % size, 0, in, length, MPI_BYTE, (rank + size - 1) % size, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) puts(maps_name("libhwloc") ? "with hwloc" : "without hwloc");
}
