/* Rank 0 works on the memory of the others while they compute for a second without calling MPI. Arguments: what memory
   it is, and "alone" where it must be done before they call again. */
#include "scenarios.h"

static void operate(MPI_Win win, int target, int64_t* fetched) {
  int64_t values[64], one = 1, seven = 7, back[64], found;
  for (int k = 0; k < 64; ++k) values[k] = 100 * target + k;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Put(values, 64, MPI_INT64_T, target, 0, 64, MPI_INT64_T, win);
  MPI_Win_unlock(target, win);
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
  MPI_Fetch_and_op(&one, fetched, MPI_INT64_T, target, 64, MPI_SUM, win);
  MPI_Win_flush(target, win);
  MPI_Compare_and_swap(&seven, &one, &found, MPI_INT64_T, target, 64, win);
  MPI_Accumulate(values, 64, MPI_INT64_T, target, 65, 64, MPI_INT64_T, MPI_SUM, win);
  MPI_Get(back, 64, MPI_INT64_T, target, 0, 64, MPI_INT64_T, win);
  MPI_Win_unlock(target, win);
  REQUIRE(*fetched == 0 && found == 1, "fetched %ld, found %ld", (long)*fetched, (long)found);
  REQUIRE(memcmp(values, back, sizeof back) == 0, "what was put at %d did not come back", target);
}

SCENARIO(passive) {
  const char* kind = argv[1];
  int alone = argc > 2;
  enum { WORDS = 129, BYTES = WORDS * 8 };
  static int64_t in_data[WORDS];
  int64_t on_stack[WORDS], *base = NULL, *allocated = NULL;
  memset(on_stack, 0, sizeof on_stack);
  MPI_Win win;
  if (!strcmp(kind, "static")) base = in_data;
  if (!strcmp(kind, "stack")) base = on_stack;
  if (!strcmp(kind, "heap")) base = allocated = calloc(1, BYTES);
  if (!strcmp(kind, "large")) base = allocated = calloc(1, 1 << 20);
  if (base) MPI_Win_create(base, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  else if (!strcmp(kind, "shared")) MPI_Win_allocate_shared(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  else MPI_Win_allocate(BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  memset(base, 0, BYTES);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  MPI_Win_sync(win);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  double done = 0, called = 0, first;
  if (rank == 0) {
    usleep(100000);
    int64_t fetched;
    for (int target = 1; target < size; ++target) operate(win, target, &fetched);
    done = now();
  } else {
    for (double start = now(); now() < start + 1;) usleep(1000);
    called = now();
  }
  MPI_Bcast(&done, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) called = done + 1;
  MPI_Allreduce(&called, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  if (alone) REQUIRE(done < first, "took until %.3f s after a target called MPI again", done - first);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int k = 0; rank != 0 && k < 64; ++k)
    REQUIRE(base[k] == 100 * rank + k && base[65 + k] == 100 * rank + k, "%d is %ld", k, (long)base[k]);
  if (rank != 0) REQUIRE(base[64] == 7, "swapped to %ld", (long)base[64]);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
  free(allocated);
}
