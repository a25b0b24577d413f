/* freeing TIMES: communicators of several kinds are made, used and freed, so many times. Each rank says which number was the
   largest that one of them had, how many descriptors the process has and how much memory, early and at the end:
   "early: 9 31 20480 KiB". Hosts use numbers again, so whoever keeps communicators makes the largest grow. */
#include <dirent.h>
#include <string.h>

#include "nine.inc"

static int descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

static long resident_kib(void) {
  char line[256];
  long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, "VmRSS:", 6)) kib = atol(line + 6);
  fclose(file);
  return kib;
}

static int largest;

static void note(MPI_Comm comm) {
  const int number = (int)MPI_Comm_c2f(comm) & 0x3ffffff; /* MPICH: without the kind of handle */
  if (number > largest) largest = number;
}

static void tell(const char* when) { printf("%s: %d %d %ld KiB\n", when, largest, descriptors(), resident_kib()); }

int main(int argc, char** argv) {
  int rank, size;
  const int times = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < times; ++i) {
    MPI_Comm dup, reversed, half, unused;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(dup, rank % 2, rank, &half);
    MPI_Comm_dup(half, &unused);
    nine_collectives(i % 2 ? dup : reversed, i % 8 > 1 ? 10 : 5000, i);
    nine_collectives(half, 10, i);
    MPI_Comm* all[] = {&dup, &half, &unused, &reversed};
    for (int k = 0; k < 4; ++k) {
      note(*all[(k + i) % 4]);
      MPI_Comm_free(all[(k + i) % 4]);
    }
    if (i == times / 4) tell("early");
  }
  tell("at the end");
  MPI_Finalize();
}
