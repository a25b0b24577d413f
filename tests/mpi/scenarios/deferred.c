/* Types that are not committed, and communicators whose first collective calls the host serves. */
#include "scenarios.h"

static double given[64];

/* One that is not committed is an error also where an equal one has been used. */
SCENARIO(deferred_not_committed) {
  MPI_Datatype committed, other;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 0; i < 3; ++i) {
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &committed);
    MPI_Type_commit(&committed);
    CHECK(MPI_Bcast(given, 1, committed, 0, MPI_COMM_SELF) == MPI_SUCCESS);
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &other);
    CHECK(class_of(MPI_Bcast(given, 1, other, 0, MPI_COMM_SELF)) == MPI_ERR_TYPE);
    MPI_Type_free(&other);
    MPI_Type_free(&committed);
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Of doubles whose sum and product depend on the order: the same at every call, however it is served. */
enum { doubles = 8 };
static void reduce_by(MPI_Op op, double* all, MPI_Comm comm, int way, int root) {
  double mine[doubles];
  MPI_Request request;
  for (int i = 0; i < doubles; ++i) all[i] = mine[i] = 1.0 / (3 + 7 * rank + i) * (rank % 2 ? 1e10 : 1);
  switch (way) {
    case 0: MPI_Allreduce(mine, all, doubles, MPI_DOUBLE, op, comm); break;
    case 1: MPI_Allreduce(MPI_IN_PLACE, all, doubles, MPI_DOUBLE, op, comm); break;
    case 2:
      MPI_Reduce(mine, all, doubles, MPI_DOUBLE, op, root, comm);
      MPI_Bcast(all, doubles, MPI_DOUBLE, root, comm);
      break;
    default: MPI_Iallreduce(mine, all, doubles, MPI_DOUBLE, op, comm, &request);
  }
  if (way > 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void use(MPI_Comm comm, int seed) {
  int me, p;
  double first[doubles], again[doubles];
  const MPI_Op op = seed % 2 ? MPI_PROD : MPI_SUM;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &p);
  reduce_by(op, first, comm, seed % 3, 0);
  for (int call = 0; call < 12; ++call) {
    reduce_by(op, again, comm, call < 8 ? (seed + call) % 3 : call % 4, call % p);
    for (int i = 0; i < doubles; ++i)
      REQUIRE(again[i] == first[i], "%s, call %d of %d ranks: %.17g for %.17g", seed % 2 ? "product" : "sum", call, p,
              again[i], first[i]);
    int given = me + call, most = -1, all[size];
    switch ((seed + call) % 4) {
      case 0:
        MPI_Allgather(&given, 1, MPI_INT, all, 1, MPI_INT, comm);
        for (int r = 0; r < p; ++r) REQUIRE(all[r] == r + call);
        break;
      case 1:
        MPI_Allreduce(&given, &most, 1, MPI_INT, MPI_MAX, comm);
        REQUIRE(most == p - 1 + call);
        break;
      case 2: MPI_Barrier(comm); break;
      default:
        MPI_Gather(&given, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
        for (int r = 0; r < p && me == 0; ++r) REQUIRE(all[r] == r + call);
    }
  }
}

SCENARIO(deferred_communicators) {
  for (int seed = 0; seed < 12; ++seed) {
    MPI_Comm dup, half, cart, of_dup;
    const int dims[] = {size}, periods[] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Cart_create(dup, 1, dims, periods, 0, &cart);
    MPI_Comm_dup(dup, &of_dup);
    use(half, seed);
    use(dup, seed + 1);
    use(of_dup, seed + 2);
    use(cart, seed + 3);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&half);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&of_dup);
  }
}

/* Windows and planned operations need memory at once; messages never wait for it. */
SCENARIO(deferred_windows) {
  for (int i = 0; i < 6; ++i) {
    MPI_Comm comm;
    int *memory, one = 1, sum = 0;
    MPI_Win win;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 2) MPI_Barrier(comm);
    MPI_Sendrecv(&one, 1, MPI_INT, (rank + 1) % size, 0, &sum, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
    CHECK(sum == 1);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win);
    *memory = 0;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    CHECK(rank || *memory == size);
    MPI_Win_free(&win);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size);
    MPI_Comm_free(&comm);
  }
}

/* Calls of nothing among others that do not wait, of which some see at once that there is nothing to do. */
static void wait_for_nothing(MPI_Comm comm) {
  MPI_Request requests[24];
  int me, values[12], nothing = 0;
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < 12; ++i) {
    values[i] = me == i % size ? i : -1;
    MPI_Ibcast(&nothing, 0, MPI_INT, 0, comm, &requests[2 * i]);
    MPI_Ibcast(&values[i], 1, MPI_INT, i % size, comm, &requests[2 * i + 1]);
  }
  MPI_Waitall(24, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 12; ++i) CHECK(values[i] == i, "call %d: %d", i, values[i]);
}

/* Communicators of all ranks, so that all make the same calls. */
SCENARIO(deferred_of_all) {
  for (int seed = 0; seed < 6; ++seed) {
    MPI_Comm dup, reversed, of_dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_dup(dup, &of_dup);
    use(reversed, seed);
    wait_for_nothing(of_dup);
    use(of_dup, seed + 1);
    use(dup, seed + 2);
    wait_for_nothing(dup);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&of_dup);
  }
}

/* Blocks of pairs of ints, which each rank lays out in its own way: MPI compares what types consist of alone. */
SCENARIO(deferred_mixed_types) {
  enum { most_pairs = 300, most_ranks = 8 };
  MPI_Datatype pair, sparse;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &sparse);
  MPI_Type_commit(&pair);
  MPI_Type_commit(&sparse);
  for (int round = 0; round < 60; ++round) {
    static int send[4 * most_pairs], got[4 * most_pairs * most_ranks];
    const MPI_Datatype types[] = {MPI_INT, pair, sparse};
    const int pairs = 1 + round * 37 % most_pairs, give = (rank + round) % 3, take = (rank + round / 3) % 3;
    const int counts[] = {2 * pairs, pairs, pairs}, strides[] = {2, 2, 4};
    MPI_Comm comm;
    for (int i = 0; i < 2 * pairs; ++i) send[i / 2 * strides[give] + i % 2] = 1000 * rank + i;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < 2; ++call) {
      memset(got, -1, sizeof got);
      MPI_Allgather(send, counts[give], types[give], got, counts[take], types[take], comm);
      for (int i = 0; i < 2 * pairs * size; ++i)
        REQUIRE(got[i / 2 * strides[take] + i % 2] == i / (2 * pairs) * 1000 + i % (2 * pairs), "round %d, %d", round,
                i);
    }
    MPI_Comm_free(&comm);
  }
  MPI_Type_free(&pair);
  MPI_Type_free(&sparse);
}

/* A communicator may be freed before what it has begun is complete. */
SCENARIO(deferred_freed_before_it_is_done) {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Request requests[4];
    int mine = rank + round, sum = 0, most = 0, last = rank == size - 1 ? round : -1;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    MPI_Ibarrier(comm, &requests[0]);
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Ibcast(&last, 1, MPI_INT, size - 1, comm, &requests[2]);
    MPI_Iscan(&mine, &most, 1, MPI_INT, MPI_MAX, comm, &requests[3]);
    MPI_Comm_free(&comm);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(sum == size * round + size * (size - 1) / 2 && last == round && most == mine, "round %d", round);
  }
}
