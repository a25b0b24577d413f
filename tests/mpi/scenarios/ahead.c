/* Who only gives in a rooted collective may be some calls ahead of the others, as plain hosts let it: the leaves of a
   Gather or Reduce, the root of a Scatter or Bcast. */
#include "scenarios.h"

enum { most = 4096, ranks = 64 };
static int counts[ranks], places[ranks], word, mine, all_ranks;
static int own[most], all[ranks * most / 4], sums[most];
static MPI_Comm comm;

/* Values of call `nth` by rank r. */
static int value(int r, int nth, int i) { return r * 1000003 + nth * 131 + i; }

/* A collective of `n` ints each, in place where the root may. */
struct kind {
  const char* name;
  int gathers;
  void (*call)(int n, int nth, int in_place, int root);
};

static void fill(int* at, int r, int n, int nth) {
  for (int i = 0; i < n; ++i) at[i] = value(r, nth, i);
}
static void compare(const char* name, const int* at, int r, int n, int nth) {
  for (int i = 0; i < n; ++i)
    if (!CHECK(at[i] == value(r, nth, i), "%s, call %d, element %d of rank %d", name, nth, i, r)) return;
}

static void gather(int n, int nth, int in_place, int root) {
  fill(own, mine, n, nth);
  if (mine == root && in_place) {
    fill(all + mine * n, mine, n, nth);
    MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, all, n, MPI_INT, root, comm);
  } else {
    MPI_Gather(own, n, MPI_INT, all, n, MPI_INT, root, comm);
  }
  memset(own, -1, sizeof own);
  for (int r = 0; mine == root && r < all_ranks; ++r) compare("gather", all + r * n, r, n, nth);
}

static void gatherv(int n, int nth, int in_place, int root) {
  (void)in_place;
  for (int r = 0; r < all_ranks; ++r) counts[r] = n, places[r] = r * n;
  fill(own, mine, n, nth);
  MPI_Gatherv(own, n, MPI_INT, all, counts, places, MPI_INT, root, comm);
  for (int r = 0; mine == root && r < all_ranks; ++r) compare("gatherv", all + r * n, r, n, nth);
}

static void reduce(int n, int nth, int in_place, int root) {
  fill(mine == root && in_place ? sums : own, mine, n, nth);
  MPI_Reduce(mine == root && in_place ? MPI_IN_PLACE : own, mine == root ? sums : NULL, n, MPI_INT, MPI_SUM, root,
             comm);
  memset(own, -1, sizeof own);
  for (int i = 0; mine == root && i < n; ++i) {
    int sum = 0;
    for (int r = 0; r < all_ranks; ++r) sum += value(r, nth, i);
    if (!CHECK(sums[i] == sum, "reduce, call %d, element %d", nth, i)) return;
  }
}

static void scatter(int n, int nth, int in_place, int root) {
  for (int r = 0; mine == root && r < all_ranks; ++r) fill(all + r * n, r, n, nth);
  memset(own, 0, (size_t)n * 4);
  const int keeps = mine == root && in_place;
  MPI_Scatter(all, n, MPI_INT, keeps ? MPI_IN_PLACE : own, n, MPI_INT, root, comm);
  compare("scatter", keeps ? all + mine * n : own, mine, n, nth);
  memset(all, -1, (size_t)(n * all_ranks) * 4);
}

static void scatterv(int n, int nth, int in_place, int root) {
  (void)in_place;
  for (int r = 0; r < all_ranks; ++r) counts[r] = n, places[r] = r * n;
  for (int r = 0; mine == root && r < all_ranks; ++r) fill(all + r * n, r, n, nth);
  MPI_Scatterv(all, counts, places, MPI_INT, own, n, MPI_INT, root, comm);
  compare("scatterv", own, mine, n, nth);
}

static void bcast(int n, int nth, int in_place, int root) {
  (void)in_place;
  if (mine == root) fill(own, root, n, nth);
  else memset(own, 0, (size_t)n * 4);
  MPI_Bcast(own, n, MPI_INT, root, comm);
  for (int i = 0; i < n; ++i)
    if (!CHECK(own[i] == value(root, nth, i), "bcast, call %d, element %d", nth, i)) return;
  memset(own, -1, sizeof own);
}

static const struct kind kinds[] = {{"gather", 1, gather},   {"reduce", 1, reduce},     {"scatter", 0, scatter},
                                    {"bcast", 0, bcast},     {"gatherv", 1, gatherv},   {"scatterv", 0, scatterv}};
enum { kinds_count = sizeof kinds / sizeof *kinds };

static void set_comm(MPI_Comm to) {
  comm = to;
  MPI_Comm_rank(comm, &mine);
  MPI_Comm_size(comm, &all_ranks);
}

/* Those that give tell the others when they have left the calls, and these begin them then. */
static void wait_for_those_ahead(int gathers, int root) {
  for (int r = 0; r < all_ranks; ++r)
    if (r != root && (gathers ? mine == root : mine == r))
      MPI_Recv(&word, 1, MPI_INT, gathers ? r : root, 0, comm, MPI_STATUS_IGNORE);
}
static void let_others_begin(int gathers, int root) {
  for (int r = 0; r < all_ranks; ++r)
    if (r != root && (gathers ? mine == r : mine == root)) MPI_Send(&word, 1, MPI_INT, gathers ? root : r, 0, comm);
}
static void run(const struct kind* kind, int bytes, int calls, int root) {
  const int n = bytes / 4, ahead = kind->gathers ? mine != root : mine == root;
  if (!ahead) wait_for_those_ahead(kind->gathers, root);
  for (int i = 0; i < calls; ++i) kind->call(n, i, i % 2, root);
  if (ahead) let_others_begin(kind->gathers, root);
}

/* A program that sends after it has given, and receives before it is given: in a loop, so that whatever is tried out
   or agreed on now and then comes as well. */
SCENARIO(ahead) {
  set_comm(MPI_COMM_WORLD);
  for (int k = 0; k < kinds_count; ++k) {
    run(&kinds[k], 4000, 1, 0);
    run(&kinds[k], 64, 100, size - 1);
    run(&kinds[k], 8, 200, 0);
    for (int i = 0; i < 150; ++i) run(&kinds[k], i % 3 ? 8 : 4000, 1, 0);
    run(&kinds[k], 4096, 100, 0);
  }
}

/* Each kind far ahead, others right behind it, and collectives of everybody. */
SCENARIO(ahead_mixed) {
  set_comm(MPI_COMM_WORLD);
  for (int i = 0; i < 60; ++i)
    for (int k = 0; k < kinds_count; ++k) {
      const int bytes = (int[]){8, 64, 400, 4000}[(i + k) % 4];
      run(&kinds[k], bytes, 1 + (i * 7 + k) % 40, (i + k) % size);
      if ((i + k) % 5 == 0) {
        int sum = 0;
        MPI_Allreduce(&k, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == k * size);
      }
      dawdle();
    }
}

/* The same without waiting for each other: who is ahead is chance. */
SCENARIO(ahead_by_chance) {
  set_comm(MPI_COMM_WORLD);
  for (int i = 0; i < 400; ++i)
    for (int k = 0; k < kinds_count; ++k) {
      const int bytes = (int[]){8, 120, 1000, 4096, 20000 / size / 4 * 4}[(i * 3 + k) % 5];
      kinds[k].call(bytes / 4, i, i % 2, (i / 7) % size);
      if (random_below(3) == 0) dawdle();
    }
}

/* Two of them, one behind the other. */
SCENARIO(ahead_in_several) {
  MPI_Comm twin, half;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Comm_split(MPI_COMM_WORLD, rank >= 2, 0, &half);
  MPI_Barrier(twin);
  MPI_Barrier(half);
  for (int i = 0; i < 60; ++i) {
    set_comm(i % 2 ? twin : MPI_COMM_WORLD);
    run(&kinds[i % kinds_count], 2000, 20, 0);
    set_comm(half);
    if (all_ranks > 1) run(&kinds[(i + 1) % kinds_count], 800, 20, all_ranks - 1);
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
}

/* Freed while the others are yet to come. */
SCENARIO(ahead_freed) {
  for (int i = 0; i < 8; ++i) {
    MPI_Comm once;
    MPI_Comm_dup(MPI_COMM_WORLD, &once);
    MPI_Barrier(once);
    const struct kind* const kind = &kinds[i % 4];
    const int ahead = kind->gathers ? rank != 0 : rank == 0;
    set_comm(MPI_COMM_WORLD);
    if (!ahead) wait_for_those_ahead(kind->gathers, 0);
    set_comm(once);
    for (int n = 0; n < 40; ++n) kind->call(500, n, 0, 0);
    MPI_Comm_free(&once);
    set_comm(MPI_COMM_WORLD);
    if (ahead) let_others_begin(kind->gathers, 0);
  }
}

/* What is left when MPI_Finalize is called. */
SCENARIO(ahead_at_the_end) {
  set_comm(MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, 1, 0, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < 60; ++i) gather(1000, i, 0, 0);
  if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 0, comm);
}

/* More than anybody buffers: who gives waits for the others, and nothing is lost. */
SCENARIO(ahead_too_far) {
  set_comm(MPI_COMM_WORLD);
  for (int k = 0; k < 4; ++k) {
    const int ahead = kinds[k].gathers ? rank != 0 : rank == 0;
    if (!ahead) usleep(20000);
    for (int i = 0; i < 1500; ++i) kinds[k].call(1000, i, 0, 0);
  }
}
