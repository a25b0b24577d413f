/* Communicators whose first collectives do not wait. */
#include "scenarios.h"

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

/* The data of a call are packed before there is a team, by a type of so many blocks that no description of it is kept;
   the thread that makes the team calls no function of the host, where the rank is. */
static void packed_before_the_team(int round) {
  enum { elements = 3000 };
  static int lengths[elements], places[elements], there[2 * elements], dense[elements];
  MPI_Comm comm, other;
  MPI_Datatype sparse;
  MPI_Request request;
  for (int i = 0; i < elements; ++i) lengths[i] = 1, places[i] = 2 * i - (i % 3 == 1);
  MPI_Type_indexed(elements, lengths, places, MPI_INT, &sparse);
  MPI_Type_commit(&sparse);
  for (int i = 0; i < elements; ++i) there[places[i]] = rank ? -1 : round + i, dense[i] = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  usleep(random_below(300));
  if (rank % 2) MPI_Ibcast(dense, elements, MPI_INT, 0, comm, &request);
  else MPI_Ibcast(there, 1, sparse, 0, comm, &request);
  MPI_Type_free(&sparse);
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
    MPI_Comm_free(&other);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < elements; ++i)
    REQUIRE((rank % 2 ? dense[i] : there[places[i]]) == round + i, "element %d of a type with many blocks", i);
  MPI_Comm_free(&comm);
}

/* Some ranks have their team already and others not, when they set a hint, or make a call that moves nothing. */
static void hints_and_empty_calls(int round) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request requests[4];
  int given = rank + round, got[2] = {-1, -1}, there = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Iallreduce(&given, &got[0], 1, MPI_INT, MPI_MAX, comm, &requests[0]);
  for (int i = 0, looks = (int)random_below(200); i < looks; ++i)
    MPI_Iprobe(0, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  MPI_Ibcast(NULL, 0, MPI_INT, 0, comm, &requests[1]);
  MPI_Iallreduce(NULL, NULL, 0, MPI_INT, MPI_MAX, comm, &requests[2]);
  MPI_Iallreduce(&given, &got[1], 1, MPI_INT, MPI_MIN, comm, &requests[3]);
  MPI_Info_create(&info);
  MPI_Info_set(info, "nearfield_algorithm", "allreduce:partitioned");
  if (round % 2) MPI_Comm_set_info(comm, info);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  CHECK(got[0] == size - 1 + round && got[1] == round, "%d and %d", got[0], got[1]);
  if (round % 2 && size > 1) {
    MPI_Allreduce(&given, &got[0], 1, MPI_INT, MPI_SUM, comm);
    CHECK(!*last_algorithm() || !strcmp(last_algorithm(), "partitioned"), "by %s", last_algorithm());
  }
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
}

/* The argument is how many rounds. */
SCENARIO(async_creation) {
  const int rounds = atoi(argv[1]);
  for (int round = 0; round < rounds; ++round) {
    crosswise(round);
    in_the_host();
    packed_before_the_team(round);
    for (int i = 0; i < 10; ++i) hints_and_empty_calls(i);
  }
}
SCENARIO(async_creation_errors) { errors(); }
