/* How many windows there may be, and how they end. */
#include <dirent.h>
#include "scenarios.h"

/* One Put around the ring; the window is as good as another. */
static void use(MPI_Win win, MPI_Comm comm, MPI_Aint displacement, int32_t* mine) {
  int me, n;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n);
  int32_t value = 1000 + me;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  MPI_Put(&value, 1, MPI_INT32_T, (me + 1) % n, displacement, 1, MPI_INT32_T, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  REQUIRE(*mine == 1000 + (me + n - 1) % n, "got %d", *mine);
}

/* Windows that are freed right behind what was put into them; memory outlives those of MPI_Win_create. */
static void pending(void) {
  enum { N = 30000 };
  double* memory = malloc(N * sizeof *memory);
  double* values = malloc(N * sizeof *values);
  for (int round = 0; round < 40; ++round) {
    MPI_Win win;
    MPI_Request requests[4];
    int next = (rank + 1) % size, length = round % 3 ? N : 5;
    for (int k = 0; k < N; ++k) values[k] = round * 7 + rank + k, memory[k] = 0;
    MPI_Win_create(memory, N * sizeof *memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (round % 4 == 0) {
      MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
      MPI_Put(values, length, MPI_DOUBLE, next, 0, length, MPI_DOUBLE, win);
      MPI_Win_unlock(next, win);
    } else if (round % 4 == 1) {
      MPI_Win_lock_all(0, win);
      for (int k = 0; k < 4; ++k)
        MPI_Rput(values + k * (length / 4), length / 4, MPI_DOUBLE, next, k * (length / 4), length / 4, MPI_DOUBLE, win,
                 requests + k);
      MPI_Win_unlock_all(win);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      length = length / 4 * 4;
    } else if (round % 4 == 2) {
      MPI_Win_fence(0, win);
      MPI_Accumulate(values, length, MPI_DOUBLE, next, 0, length, MPI_DOUBLE, MPI_SUM, win);
      MPI_Win_fence(0, win);
    } else {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
      MPI_Rput(values, length, MPI_DOUBLE, next, 0, length, MPI_DOUBLE, win, requests);
      MPI_Wait(requests, MPI_STATUS_IGNORE);
      MPI_Win_unlock(next, win);
    }
    MPI_Win_free(&win);
    int from = (rank + size - 1) % size;
    for (int k = 0; k < length; ++k)
      REQUIRE(memory[k] == round * 7 + from + k, "round %d: %d is %g", round, k, memory[k]);
    MPI_Barrier(MPI_COMM_WORLD); /* the next round clears memory that neighbours write */
  }
  free(memory);
  free(values);
}

/* `count` windows at once, fewer than 1000 and no multiple of 37. */
static void many(int count) {
  static MPI_Win wins[1000];
  static int32_t* bases[1000];
  for (int k = 0; k < count; ++k) MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &bases[k], &wins[k]);
  for (int k = 0; k < count; ++k) memset(bases[k], 0, 64);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < count; ++k) MPI_Win_lock_all(0, wins[k]);
  int32_t one = 1;
  for (int k = 0; k < count; ++k)
    for (int n = 0; n <= k % 5; ++n)
      MPI_Accumulate(&one, 1, MPI_INT32_T, k % size, n, 1, MPI_INT32_T, MPI_SUM, wins[k]);
  for (int k = count; k-- > 0;) MPI_Win_unlock_all(wins[k]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < count; ++k) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, wins[k]);
    for (int n = 0; n < 16; ++n)
      REQUIRE(bases[k][n] == (k % size == rank && n <= k % 5 ? size : 0), "window %d: %d is %d", k, n, bases[k][n]);
    MPI_Win_unlock(rank, wins[k]);
  }
  for (int k = 0; k < count; ++k) MPI_Win_free(&wins[k * 37 % count]);
}

static int descriptors(void) {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

static long resident_kib(void) {
  long total = 0, pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Windows made, used and freed again and again leave no memory and no descriptors behind. */
static void repeated(int rounds) {
  int first_descriptors = 0;
  long first_kib = 0;
  static int32_t memory[64];
  for (int round = 0; round < rounds; ++round) {
    MPI_Win win;
    int32_t* base = memory;
    int kind = round % 4;
    if (kind == 0) MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (kind == 1) MPI_Win_allocate(5000, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (kind == 2) MPI_Win_allocate_shared(5000, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (kind == 3) MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (kind == 3) MPI_Win_attach(win, memory, sizeof memory);
    if (kind < 3) use(win, MPI_COMM_WORLD, 3, base + 3);
    if (kind == 3) MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    if (round == rounds / 4) {
      first_descriptors = descriptors();
      first_kib = resident_kib();
    }
  }
  int more = descriptors() - first_descriptors;
  long kib = resident_kib() - first_kib;
  REQUIRE(more <= 2, "%d more descriptors", more);
  REQUIRE(kib < 512 + 2 * rounds, "%ld KiB more after %d windows", kib, rounds * 3 / 4);
}

SCENARIO(lifetimes_pending) { pending(); }
SCENARIO(lifetimes_many) { many(atoi(argv[1])); }
SCENARIO(lifetimes_repeated) { repeated(atoi(argv[1])); }

/* The argument is how many MiB a rank has; all of them are written. */
SCENARIO(lifetimes_shared) {
  const MPI_Aint bytes = (MPI_Aint)atol(argv[1]) << 20;
  MPI_Win win;
  MPI_Aint theirs;
  char *base, *other;
  int unit;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  memset(base, rank + 1, (size_t)bytes);
  MPI_Win_fence(0, win);
  for (int r = 0; r < size; ++r) {
    MPI_Win_shared_query(win, r, &theirs, &unit, &other);
    REQUIRE(theirs == bytes && other[0] == r + 1 && other[bytes - 1] == r + 1, "memory of rank %d", r);
  }
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}
