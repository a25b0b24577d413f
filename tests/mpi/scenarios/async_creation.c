/* Communicators whose first collectives do not wait. */
#include "scenarios.h"

static void nap(int round, int salt) { usleep((unsigned)((rank * 7919 + round * 104729 + salt * 31) % 5) * 300); }

static void keep_last(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in, (void)inout, (void)count, (void)type; /* the higher rank's stays */
}

enum { most = 40, n = 300 };

/* Many at once, of which some wait for a team that is yet to be: results, order, what is freed at once. */
static void many(int round) {
  MPI_Comm comm;
  MPI_Request requests[most];
  static int given[most][8 * n], got[most][8 * n];
  int kinds[most], count = 1 + (round * 13) % most;
  MPI_Op last;
  MPI_Op_create(keep_last, 0, &last);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < count; ++i) {
    kinds[i] = (round * 5 + i * i) % 8;
    for (int k = 0; k < 8 * n; ++k) given[i][k] = rank * 1000 + i * 17 + k, got[i][k] = -1;
    const int root = (round + i) % size, length = i % 3 == 2 ? 1 : n;
    MPI_Datatype pairs;
    MPI_Type_vector(length, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    nap(round, i);
    switch (kinds[i]) {
      case 0: MPI_Iallreduce(given[i], got[i], length, MPI_INT, MPI_SUM, comm, &requests[i]); break;
      case 1: MPI_Ibcast(rank == root ? given[i] : got[i], length, MPI_INT, root, comm, &requests[i]); break;
      case 2: MPI_Ibarrier(comm, &requests[i]); break;
      case 3: MPI_Iallreduce(given[i], got[i], length, MPI_INT, last, comm, &requests[i]); break;
      case 4: MPI_Igather(given[i], 2, MPI_INT, got[i], 2, MPI_INT, root, comm, &requests[i]); break;
      case 5: MPI_Ibcast(rank == root ? given[i] : got[i], 1, pairs, root, comm, &requests[i]); break;
      case 6: MPI_Iallreduce(given[i], got[i], 0, MPI_INT, MPI_SUM, comm, &requests[i]); break;
      default: {
        int counts[64];
        for (int r = 0; r < size; ++r) counts[r] = r % 2 ? 2 : 1;
        MPI_Ireduce_scatter(given[i], got[i], counts, MPI_INT, MPI_SUM, comm, &requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE); /* the counts go */
      }
    }
    MPI_Type_free(&pairs);
  }
  if (round % 4 == 1) { /* one that waits comes after all of them */
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    REQUIRE(all == size, "the call that waits");
  }
  MPI_Op_free(&last);
  if (round % 3 == 0) {
    for (int i = count; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  } else if (round % 3 == 1) {
    for (int flag = 0; !flag;) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
  } else {
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }
  if (round % 2) MPI_Comm_free(&comm);
  for (int i = 0; i < count; ++i) {
    const int root = (round + i) % size, length = i % 3 == 2 ? 1 : n;
    for (int k = 0; k < length; ++k) {
      const int mine = i * 17 + k;
      if (kinds[i] == 0) REQUIRE(got[i][k] == size * mine + 1000 * size * (size - 1) / 2, "Iallreduce");
      if (kinds[i] == 1) REQUIRE(rank == root || got[i][k] == root * 1000 + mine, "Ibcast");
      if (kinds[i] == 3) REQUIRE(got[i][k] == (size - 1) * 1000 + mine, "Iallreduce by an operator of our own");
      if (kinds[i] == 5) REQUIRE(rank == root || got[i][2 * k] == root * 1000 + mine + k, "Ibcast of a vector");
      if (kinds[i] == 6) REQUIRE(got[i][k] == -1, "Iallreduce of nothing");
    }
    for (int r = 0; kinds[i] == 4 && rank == root && r < size; ++r)
      REQUIRE(got[i][2 * r] == r * 1000 + i * 17 && got[i][2 * r + 1] == r * 1000 + i * 17 + 1, "Igather");
    if (kinds[i] == 7) {
      int first = 0;
      for (int r = 0; r < rank; ++r) first += r % 2 ? 2 : 1;
      REQUIRE(got[i][0] == size * (i * 17 + first) + 1000 * size * (size - 1) / 2, "Ireduce_scatter");
    }
  }
  if (round % 2 == 0) MPI_Comm_free(&comm);
}

/* Nobody may wait for others where MPI does not: all requests are made before any message that the others need. */
static void crosswise(int round) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Request requests[100];
  int given[100], got[100], word = round;
  const int before = (rank + size - 1) % size, after = (rank + 1) % size;
  if (rank) MPI_Recv(&word, 1, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 100; ++i) {
    given[i] = rank + i;
    MPI_Iallreduce(&given[i], &got[i], 1, MPI_INT, MPI_MAX, comm, &requests[i]);
  }
  if (rank + 1 < size) MPI_Send(&word, 1, MPI_INT, after, 5, MPI_COMM_WORLD);
  MPI_Waitall(100, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 100; ++i) REQUIRE(got[i] == size - 1 + i, "crosswise");
  MPI_Comm_free(&comm);
}

/* A rank that is in a call of the host's does its part. */
static void in_the_host(void) {
  MPI_Comm comm, other;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int given = rank + 1, got = 0;
  MPI_Iallreduce(&given, &got, 1, MPI_INT, MPI_SUM, comm, &request);
  if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE); /* while all others are in MPI_Comm_split */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
  if (rank) MPI_Wait(&request, MPI_STATUS_IGNORE);
  REQUIRE(got == size * (size + 1) / 2, "while others are in the host");
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

/* What is wrong is told at once, and harms nobody. */
static void errors(void) {
  MPI_Comm comm;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int word = rank;
  for (int i = 0; i < 3; ++i) {
    const int code = MPI_Ibcast(&word, 1, MPI_INT, size + 3, comm, &request);
    CHECK(class_of(code) == MPI_ERR_ROOT, "the root that is none");
  }
  MPI_Ibcast(&word, 1, MPI_INT, 0, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  REQUIRE(word == 0, "after errors");
  MPI_Comm_free(&comm);
}

static int let_go;
static int count_let_go(MPI_Comm comm, int key, void* value, void* state) {
  (void)comm, (void)key, (void)value, (void)state;
  ++let_go;
  return MPI_SUCCESS;
}
/* A communicator that is freed while its first collective is under way goes when that is complete. */
SCENARIO(async_creation_freed) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_let_go, &key, NULL);
  let_go = 0;
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &let_go);
    int given = rank + 1, got = 0, there = 0;
    MPI_Iallreduce(&given, &got, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Comm_free(&comm);
    if (round % 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
    else
      while (!there) MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    CHECK(got == size * (size + 1) / 2);
    CHECK(let_go == round + 1, "%d of %d have gone", let_go, round + 1);
  }
  MPI_Comm_free_keyval(&key);
}

/* The argument is how many rounds. */
SCENARIO(async_creation) {
  const int rounds = atoi(argv[1]);
  for (int round = 0; round < rounds; ++round) {
    many(round);
    if (round % 5 == 0) crosswise(round);
    if (round % 7 == 0) in_the_host();
  }
}
SCENARIO(async_creation_errors) { errors(); }
