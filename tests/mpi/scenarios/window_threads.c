/* Two threads of each rank on the same window and on windows of their own, at the same time. */
#include "scenarios.h"

enum { ROUNDS = 150, WORDS = 64 };
static MPI_Win same, apart[2];
static int64_t *common, *own[2];
static int64_t done[2];
static double end;

static void* work(void* argument) {
  int me = (int)(intptr_t)argument;
  unsigned seed = (unsigned)(rank * 2 + me) * 2654435761u;
  int64_t one = 1, last = -1, fetched, values[16], back[16];
  for (int round = 0; round < ROUNDS && now() < end; ++round) {
    seed = seed * 1664525u + 1013904223u;
    int target = (int)((seed >> 8) % (unsigned)size);
    MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, 0, 0, MPI_SUM, same);
    MPI_Win_flush(0, same);
    REQUIRE(fetched > last, "thread %d fetched %ld after %ld", me, (long)fetched, (long)last);
    last = fetched;
    /* Words that are this thread's alone. */
    for (int k = 0; k < 16; ++k) values[k] = round * 1000 + k;
    MPI_Put(values, 16, MPI_INT64_T, rank, 8 + me * 16, 16, MPI_INT64_T, same);
    MPI_Win_flush(rank, same);
    MPI_Request request;
    MPI_Rget(back, 16, MPI_INT64_T, rank, 8 + me * 16, 16, MPI_INT64_T, same, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(!memcmp(values, back, sizeof back), "thread %d got %ld, not %ld", me, (long)back[0], (long)values[0]);
    /* A window of the thread's own, with locks of its own. */
    MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, apart[me]);
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, apart[me]);
    MPI_Win_unlock(target, apart[me]);
    ++done[me];
  }
  return NULL;
}

SCENARIO(window_threads) {
  int provided;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  MPI_Win_allocate(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &common, &same);
  for (int k = 0; k < 2; ++k) MPI_Win_allocate(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own[k], &apart[k]);
  memset(common, 0, WORDS * 8);
  for (int k = 0; k < 2; ++k) memset(own[k], 0, WORDS * 8);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, same);
  end = now() + 10;
  pthread_t threads[2];
  for (int k = 0; k < 2; ++k) pthread_create(&threads[k], NULL, work, (void*)(intptr_t)k);
  for (int k = 0; k < 2; ++k) pthread_join(threads[k], NULL);
  MPI_Win_unlock_all(same);
  int64_t sums[2], have[2];
  MPI_Allreduce(done, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, same);
  if (rank == 0) REQUIRE(common[0] == sums[0] + sums[1], "%ld of %ld", (long)common[0], (long)(sums[0] + sums[1]));
  MPI_Win_unlock(rank, same);
  for (int k = 0; k < 2; ++k) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, apart[k]);
    MPI_Allreduce(&own[k][1], &have[k], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_unlock(rank, apart[k]);
    REQUIRE(have[k] == sums[k], "%ld of %ld", (long)have[k], (long)sums[k]);
  }
  for (int k = 0; k < 2; ++k) MPI_Win_free(&apart[k]);
  MPI_Win_free(&same);
}
