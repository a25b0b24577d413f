/* What locks of windows exclude, and what they admit. */
#include "scenarios.h"

static double end;
static MPI_Win win;
static int64_t* words;

enum { WORDS = 8 };

static void open_window(void) {
  MPI_Win_allocate(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
  memset(words, 0, WORDS * 8);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void get(int64_t* value, int target, int word) {
  MPI_Get(value, 1, MPI_INT64_T, target, word, 1, MPI_INT64_T, win);
  MPI_Win_flush(target, win);
}

/* This rank's word, after all are done. */
static int64_t own(int word) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  int64_t value = words[word];
  MPI_Win_unlock(rank, win);
  return value;
}

/* A read-modify-write that only the lock protects; two words that differ only meanwhile. */
static void change(int target) {
  int64_t value, other;
  get(&value, target, 0);
  get(&other, target, 1);
  REQUIRE(value == other, "an exclusive lock was not alone: %ld and %ld", (long)value, (long)other);
  ++value;
  MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
  MPI_Win_flush(target, win);
  dawdle();
  MPI_Put(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win);
}

static void look(int target) {
  int64_t value, other;
  get(&value, target, 0);
  dawdle();
  get(&other, target, 1);
  REQUIRE(value == other, "a lock came between: %ld and %ld", (long)value, (long)other);
}

static void check_changes(int64_t* made) {
  int64_t sums[64];
  MPI_Allreduce(made, sums, size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  int64_t have = own(0);
  REQUIRE(have == sums[rank], "%ld of %ld changes", (long)have, (long)sums[rank]);
}

/* Exclusive locks of two targets, shared ones, and locks of all. */
static void excludes(int with_all) {
  int64_t made[64] = {0};
  for (int round = 0; round < 3000 && now() < end; ++round) {
    int target = random_below(2) ? 0 : size - 1, what = (int)random_below(4);
    if (what > 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      change(target);
      MPI_Win_unlock(target, win);
      ++made[target];
    } else if (with_all) {
      MPI_Win_lock_all(0, win);
      look(0);
      look(size - 1);
      MPI_Win_unlock_all(win);
    } else {
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
      look(target);
      MPI_Win_unlock(target, win);
    }
    dawdle();
  }
  check_changes(made);
}

/* Locks of every target at once, in the order of ranks, as a transaction takes them. */
static void transactions(void) {
  int64_t made[64] = {0};
  for (int round = 0; round < 200 && now() < end; ++round) {
    int first = (int)random_below((unsigned)size), last = first + (int)random_below((unsigned)(size - first));
    for (int target = first; target <= last; ++target) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    for (int target = first; target <= last; ++target) {
      change(target);
      ++made[target];
    }
    for (int target = first; target <= last; ++target) MPI_Win_unlock(target, win);
  }
  check_changes(made);
}

/* All hold a shared lock of the same target, or of all, at once: otherwise nobody would leave the barrier. */
static void admits(void) {
  for (int round = 0; round < 20; ++round) {
    int64_t one = 1;
    if (round % 2) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    else MPI_Win_lock_all(0, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t seen;
    get(&seen, 0, 2);
    REQUIRE(seen == (int64_t)(round + 1) * size, "%ld in round %d", (long)seen, round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round % 2) MPI_Win_unlock(0, win);
    else MPI_Win_unlock_all(win);
  }
}

/* Everybody wants the same lock all the time; everybody gets it, at the least one time in `share` of the even share. */
static void fairness(int share) {
  int64_t rounds = 0, total, least;
  double start = now();
  while (now() < end || rounds == 0) {
    MPI_Win_lock(random_below(4) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    int64_t seen;
    get(&seen, 0, 3);
    MPI_Win_unlock(0, win);
    ++rounds;
    if (now() > start + 20) break;
  }
  MPI_Allreduce(&rounds, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&rounds, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  REQUIRE(least >= 1, "somebody starved while others had the lock %ld times", (long)total);
  if (share) REQUIRE(least >= total / size / share, "somebody had the lock %ld of %ld times", (long)least, (long)total);
}

/* Locks without a check: in turns, and shared only. */
static void unchecked(void) {
  for (int round = 0; round < 4; ++round) {
    for (int turn = 0; turn < size; ++turn) {
      if (turn == rank) {
        for (int target = 0; target < size; ++target) {
          MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, MPI_MODE_NOCHECK, win);
          change(target);
          MPI_Win_unlock(target, win);
        }
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    int64_t one = 1, seen;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
    get(&seen, 0, 2);
    MPI_Win_unlock(0, win);
    REQUIRE(seen == (int64_t)(round + 1) * size, "%ld in round %d", (long)seen, round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int64_t value = words[0];
  REQUIRE(value == (int64_t)4 * size, "%ld changes", (long)value);
}

/* A scenario on a window of all ranks; its argument are seconds. */
#define ON_A_WINDOW(name, ...)   \
  SCENARIO(locks_##name) {       \
    open_window();               \
    end = now() + atof(argv[1]); \
    __VA_ARGS__;                 \
    MPI_Win_free(&win);          \
  }
ON_A_WINDOW(exclusive, excludes(0))
ON_A_WINDOW(all, excludes(1))
ON_A_WINDOW(transactions, transactions())
ON_A_WINDOW(shared, admits())
ON_A_WINDOW(fairness, fairness(argc > 2 ? atoi(argv[2]) : 0))
ON_A_WINDOW(unchecked, unchecked())
