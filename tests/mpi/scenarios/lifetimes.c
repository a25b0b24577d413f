/* What windows tell of themselves, how many there may be, and how they end. */
#include <dirent.h>
#include "scenarios.h"

static MPI_Aint attribute(MPI_Win win, int key) {
  void* value;
  int there;
  MPI_Win_get_attr(win, key, &value, &there);
  REQUIRE(there, "attribute %d is missing", key);
  if (key == MPI_WIN_SIZE) return *(MPI_Aint*)value;
  if (key == MPI_WIN_BASE) return (MPI_Aint)value;
  return *(int*)value;
}

static void check(MPI_Win win, MPI_Comm comm, void* base, MPI_Aint bytes, int unit, int flavor) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC) {
    REQUIRE(attribute(win, MPI_WIN_SIZE) == bytes, "size %ld", (long)attribute(win, MPI_WIN_SIZE));
    REQUIRE(attribute(win, MPI_WIN_BASE) == (MPI_Aint)base || !bytes, "base of flavor %d", flavor);
    REQUIRE(attribute(win, MPI_WIN_DISP_UNIT) == unit, "unit %ld", (long)attribute(win, MPI_WIN_DISP_UNIT));
  }
  REQUIRE(attribute(win, MPI_WIN_CREATE_FLAVOR) == flavor, "flavor %ld", (long)attribute(win, MPI_WIN_CREATE_FLAVOR));
  MPI_Aint model = attribute(win, MPI_WIN_MODEL);
  REQUIRE(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE, "model %ld", (long)model);
  char name[MPI_MAX_OBJECT_NAME];
  int length, result;
  MPI_Win_set_name(win, "halo");
  MPI_Win_get_name(win, name, &length);
  REQUIRE(!strcmp(name, "halo") && length == 4, "name %s", name);
  MPI_Group group, ours;
  MPI_Win_get_group(win, &group);
  MPI_Comm_group(comm, &ours);
  MPI_Group_compare(group, ours, &result);
  REQUIRE(result == MPI_IDENT, "the group is another");
  MPI_Group_free(&group);
  MPI_Group_free(&ours);
  MPI_Info info;
  MPI_Win_get_info(win, &info);
  REQUIRE(info != MPI_INFO_NULL, "no info");
  MPI_Info_free(&info);
  int key, there;
  void* value;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
  MPI_Win_set_attr(win, key, &key);
  MPI_Win_get_attr(win, key, &value, &there);
  REQUIRE(there && value == &key, "an attribute of the program is lost");
  MPI_Win_delete_attr(win, key);
  MPI_Win_free_keyval(&key);
  MPI_Errhandler handler;
  MPI_Win_get_errhandler(win, &handler);
  REQUIRE(handler == MPI_ERRORS_ARE_FATAL, "the first error handler is another");
  MPI_Errhandler_free(&handler);
}

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

static MPI_Info keys(const char* const* pairs) {
  MPI_Info info;
  MPI_Info_create(&info);
  for (; *pairs; pairs += 2) MPI_Info_set(info, pairs[0], pairs[1]);
  return info;
}

static void attributes(void) {
  MPI_Comm half, comms[3] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  comms[2] = half;
  static const char* const locks[] = {"no_locks", "true", "same_size", "true", "same_disp_unit", "true", NULL};
  static const char* const order[] = {"accumulate_ops", "same_op", "accumulate_ordering", "none", NULL};
  static const char* const gaps[] = {"alloc_shared_noncontig", "true", "unknown_key", "yes", NULL};
  static const char* const* const sets[] = {locks, order, gaps};
  for (int c = 0; c < 3; ++c) {
    for (int k = 0; k < 4; ++k) {
      MPI_Info info = k < 3 ? keys(sets[k]) : MPI_INFO_NULL;
      MPI_Win win;
      int32_t* base;
      static int32_t memory[100];
      MPI_Win_create(memory, sizeof memory, 4, info, comms[c], &win);
      check(win, comms[c], memory, sizeof memory, 4, MPI_WIN_FLAVOR_CREATE);
      use(win, comms[c], 7, memory + 7);
      MPI_Win_free(&win);
      REQUIRE(win == MPI_WIN_NULL, "the handle remains");
      MPI_Win_allocate(400, 2, info, comms[c], &base, &win);
      check(win, comms[c], base, 400, 2, MPI_WIN_FLAVOR_ALLOCATE);
      use(win, comms[c], 8, base + 4);
      MPI_Win_free(&win);
      MPI_Win_allocate_shared(400, 1, info, comms[c], &base, &win);
      check(win, comms[c], base, 400, 1, MPI_WIN_FLAVOR_SHARED);
      use(win, comms[c], 16, base + 4);
      MPI_Win_free(&win);
      MPI_Win_create_dynamic(info, comms[c], &win);
      check(win, comms[c], NULL, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
      MPI_Win_attach(win, memory, sizeof memory);
      MPI_Aint there, *all = malloc((size_t)size * sizeof there);
      int me, n;
      MPI_Get_address(memory + 11, &there);
      MPI_Comm_rank(comms[c], &me);
      MPI_Comm_size(comms[c], &n);
      MPI_Allgather(&there, 1, MPI_AINT, all, 1, MPI_AINT, comms[c]);
      use(win, comms[c], all[(me + 1) % n], memory + 11);
      free(all);
      MPI_Barrier(comms[c]);
      MPI_Win_detach(win, memory);
      MPI_Win_free(&win);
      if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    }
  }
  MPI_Comm_free(&half);
}

/* Shared memory as MPI_Win_shared_query tells it: sizes that differ, ranks without any, the first that has some. */
static void queries(void) {
  for (int apart = 0; apart < 2; ++apart) {
    static const char* const gaps[] = {"alloc_shared_noncontig", "true", NULL};
    MPI_Info info = apart ? keys(gaps) : MPI_INFO_NULL;
    MPI_Aint mine = rank == 1 ? 0 : 64 * (rank + 1), bytes;
    MPI_Win win;
    int32_t *base, *other;
    int unit;
    MPI_Win_allocate_shared(mine, 4, info, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < (int)mine / 4; ++k) base[k] = rank * 100 + k;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    int32_t* expected = NULL;
    for (int r = 0; r < size; ++r) {
      MPI_Win_shared_query(win, r, &bytes, &unit, &other);
      MPI_Aint theirs = r == 1 ? 0 : 64 * (r + 1);
      if (!theirs) continue;
      REQUIRE(unit == 4 && bytes >= theirs && (apart || bytes == theirs), "%d: %ld bytes", r, (long)bytes);
      for (int k = 0; k < (int)theirs / 4; ++k) REQUIRE(other[k] == r * 100 + k, "%d of %d: %d", k, r, other[k]);
      REQUIRE(apart || !expected || other == expected, "memory of %d does not follow", r);
      expected = other + theirs / 4;
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other);
    REQUIRE(other[3] == 3 && unit == 4 && bytes >= 64, "the first with memory: %ld bytes", (long)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    if (apart) MPI_Info_free(&info);
  }
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

SCENARIO(lifetimes_attributes) { attributes(); }
SCENARIO(lifetimes_queries) { queries(); }
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
