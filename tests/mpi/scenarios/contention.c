/* Atomic operations of all ranks on the same words, for the seconds that are each scenario's argument: nothing is lost,
   nothing is torn. */
#include "scenarios.h"

static double end;
static MPI_Win win;

/* A window of `bytes` zeros on each rank, locked by all for all. */
static void* open_window(MPI_Aint bytes, int unit) {
  void* base;
  MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  memset(base, 0, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  return base;
}

static void meet(void) {
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
}

static void close_window(void) {
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

/* Fetch-and-add on one word by all: what is fetched is each number once. */
static void counters(void) {
  enum { MOST = 1 << 16 };
  unsigned char* mine = calloc(MOST, 1);
  unsigned char* all = calloc(MOST, 1);
  int64_t* words = open_window(64 * 8, 8);
  int64_t one = 1, fetched, last = -1, done = 0, others[8] = {0};
  while (done < MOST / size && now() < end) {
    MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    REQUIRE(fetched > last && fetched < MOST, "fetched %ld after %ld", (long)fetched, (long)last);
    last = fetched;
    mine[fetched] = 1;
    ++done;
    /* Several words, of several ranks, in one cache line or not. */
    int target = (int)random_below((unsigned)size), word = (int)random_below(8);
    if (random_below(2)) {
      MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, target, 1 + word * 7, MPI_SUM, win);
      MPI_Win_flush(target, win);
    } else {
      MPI_Accumulate(&one, 1, MPI_INT64_T, target, 1 + word * 7, 1, MPI_INT64_T, MPI_SUM, win);
    }
    ++others[word];
  }
  meet();
  int64_t total, sums[8], have[8], held[8];
  MPI_Allreduce(&done, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(others, sums, 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int word = 0; word < 8; ++word) held[word] = words[1 + word * 7];
  MPI_Allreduce(held, have, 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int word = 0; word < 8; ++word)
    REQUIRE(have[word] == sums[word], "word %d: %ld of %ld", word, (long)have[word], (long)sums[word]);
  MPI_Allreduce(mine, all, MOST, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
  for (int64_t k = 0; k < total; ++k) REQUIRE(all[k] == 1, "%ld was fetched %d times", (long)k, all[k]);
  if (rank == 0) REQUIRE(words[0] == total, "counted to %ld of %ld", (long)words[0], (long)total);
  close_window();
  free(mine);
  free(all);
}

/* The same for the other types that processors add to in one instruction, and for some that they do not. */
#define COUNTS(name, type, datatype)                                                                            \
  static void name(void) {                                                                                      \
    type* words = open_window(8 * sizeof(type), sizeof(type));                                                  \
    type one = 1, fetched, sum = 0;                                                                             \
    int done = 0, total;                                                                                        \
    for (; done < 60 / size && now() < end + 1; ++done) {                                                       \
      MPI_Accumulate(&one, 1, datatype, 0, 3, 1, datatype, MPI_SUM, win);                                       \
      MPI_Fetch_and_op(&one, &fetched, datatype, 0, 4, MPI_SUM, win);                                           \
      MPI_Get_accumulate(&one, 1, datatype, &sum, 1, datatype, 0, 5, 1, datatype, MPI_SUM, win);                \
      MPI_Win_flush(0, win);                                                                                    \
      dawdle();                                                                                                 \
    }                                                                                                           \
    MPI_Allreduce(&done, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);                                          \
    meet();                                                                                                     \
    for (int k = 0; rank == 0 && k < 8; ++k)                                                                    \
      REQUIRE((int)words[k] == (k >= 3 && k <= 5 ? total : 0), #type " %d: %d of %d", k, (int)words[k], total); \
    close_window();                                                                                             \
  }
COUNTS(bytes, int8_t, MPI_INT8_T)
COUNTS(shorts, uint16_t, MPI_UINT16_T)
COUNTS(ints, int32_t, MPI_INT32_T)
COUNTS(floats, float, MPI_FLOAT)
COUNTS(doubles, double, MPI_DOUBLE)
COUNTS(long_doubles, long double, MPI_LONG_DOUBLE)

/* A spin lock of compare-and-swap around a counter that is read and written without atomicity. */
static void spin(void) {
  int64_t* words = open_window(16, 8);
  int64_t zero = 0, mine = rank + 1, found, counter, done = 0, total;
  int where = size - 1;
  while (done < 400 && now() < end) {
    do {
      MPI_Compare_and_swap(&mine, &zero, &found, MPI_INT64_T, 0, 0, win);
      MPI_Win_flush(0, win);
      if (found) sched_yield();
    } while (found != 0 && now() < end);
    if (found != 0) break;
    MPI_Get(&counter, 1, MPI_INT64_T, where, 1, 1, MPI_INT64_T, win);
    MPI_Win_flush(where, win);
    ++counter;
    if (random_below(16) == 0) sched_yield();
    MPI_Put(&counter, 1, MPI_INT64_T, where, 1, 1, MPI_INT64_T, win);
    MPI_Win_flush(where, win);
    MPI_Fetch_and_op(&zero, &found, MPI_INT64_T, 0, 0, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    REQUIRE(found == mine, "the lock of %ld was %ld's", (long)mine, (long)found);
    ++done;
  }
  MPI_Allreduce(&done, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  meet();
  if (rank == where) REQUIRE(words[1] == total, "%ld of %ld", (long)words[1], (long)total);
  REQUIRE(total > 0, "nobody got the lock");
  close_window();
}

/* Overlapping ranges of 1 to 64 KiB; `both` mixes single elements with them, and reads that must not be torn. */
#define RANGES(name, type, datatype, one_more, halves)                                                               \
  static void name(int both) {                                                                                       \
    enum { N = 65536 / sizeof(type) };                                                                               \
    type* words = open_window(65536, sizeof(type));                                                                  \
    static type ones[N], got[N];                                                                                     \
    static int added[N + 1], sums[N + 1];                                                                            \
    memset(added, 0, sizeof added);                                                                                  \
    for (int k = 0; k < N; ++k) ones[k] = one_more;                                                                  \
    for (int round = 0; round < 300 && now() < end; ++round) {                                                       \
      int length = (int)(1024 / sizeof(type) + random_below(N - 1024 / sizeof(type)));                               \
      int start = (int)random_below((unsigned)(N - length + 1)), what = both ? (int)random_below(4) : 0;             \
      if (what == 1) {                                                                                               \
        for (int k = 0; k < 40; ++k) {                                                                               \
          int place = (int)random_below(64);                                                                         \
          if (k % 2) MPI_Accumulate(ones, 1, datatype, 0, place, 1, datatype, MPI_SUM, win);                         \
          else MPI_Fetch_and_op(ones, got + k, datatype, 0, place, MPI_SUM, win);                                    \
          ++added[place];                                                                                            \
          --added[place + 1];                                                                                        \
        }                                                                                                            \
        MPI_Win_flush(0, win);                                                                                       \
      } else if (what == 2) {                                                                                        \
        if (length > 2048) length = 2048;                                                                            \
        MPI_Get_accumulate(NULL, 0, datatype, got, length, datatype, 0, start, length, datatype, MPI_NO_OP, win);    \
        MPI_Win_flush(0, win);                                                                                       \
        for (int k = 0; k < length; ++k) REQUIRE(halves(got[k]), "%d is torn: %lx", k, (long)got[k]);                \
      } else if (what == 3) {                                                                                        \
        MPI_Get_accumulate(ones, length, datatype, got, length, datatype, 0, start, length, datatype, MPI_SUM, win); \
        MPI_Win_flush(0, win);                                                                                       \
        for (int k = 0; k < length; ++k) REQUIRE(halves(got[k]), "%d is torn: %lx", k, (long)got[k]);                \
        ++added[start];                                                                                              \
        --added[start + length];                                                                                     \
      } else {                                                                                                       \
        MPI_Accumulate(ones, length, datatype, 0, start, length, datatype, MPI_SUM, win);                            \
        if (random_below(2)) MPI_Win_flush(0, win);                                                                  \
        ++added[start];                                                                                              \
        --added[start + length];                                                                                     \
      }                                                                                                              \
      dawdle();                                                                                                      \
    }                                                                                                                \
    meet();                                                                                                          \
    MPI_Allreduce(added, sums, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);                                                 \
    int want = 0;                                                                                                    \
    for (int k = 0; k < N; ++k) {                                                                                    \
      want += sums[k];                                                                                               \
      if (rank == 0) REQUIRE(words[k] == (type)want * one_more, #type " %d lost some of %d", k, want);               \
    }                                                                                                                \
    close_window();                                                                                                  \
  }
#define EQUAL_HALVES(v) ((v) >> 32 == ((v) & 0xffffffff))
#define EQUAL_SHORTS(v) ((v) >> 16 == ((v) & 0xffff))
#define WHOLE(v) ((v) == (double)(int64_t)(v))
RANGES(long_ranges, int64_t, MPI_INT64_T, 0x100000001, EQUAL_HALVES)
RANGES(int_ranges, int32_t, MPI_INT32_T, 0x10001, EQUAL_SHORTS)
RANGES(double_ranges, double, MPI_DOUBLE, 1.0, WHOLE)

/* With all of the types that processors add to in one instruction, and some that they do not. */
SCENARIO(contention_counters) {
  end = now() + atof(argv[1]);
  counters();
  bytes();
  shorts();
  ints();
  floats();
  doubles();
  long_doubles();
}
SCENARIO(contention_spin) {
  end = now() + atof(argv[1]);
  spin();
}
static void ranges(double seconds, int both) {
  void (*const all[])(int) = {long_ranges, int_ranges, double_ranges};
  for (int i = 0; i < 3; ++i) {
    end = now() + seconds / 3;
    all[i](both);
  }
}
SCENARIO(contention_overlapping) { ranges(atof(argv[1]), 0); }
SCENARIO(contention_mixed) { ranges(atof(argv[1]), 1); }
