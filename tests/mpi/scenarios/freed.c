/* Operators and types that are freed while requests still need them, and communicators. */
#include "scenarios.h"

static int calls;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint low, extent;
  MPI_Type_get_extent(*type, &low, &extent);
  for (int i = 0; i < *count; ++i) {
    int *a = (int*)((char*)in + i * extent), *b = (int*)((char*)inout + i * extent);
    b[0] += a[0];
    b[2] += a[2];
  }
  ++calls;
}

static MPI_Datatype make_pair(void) {
  MPI_Datatype sparse, pair;
  MPI_Type_vector(2, 1, 2, MPI_INT, &sparse);
  MPI_Type_create_resized(sparse, 0, 4 * sizeof(int), &pair);
  MPI_Type_commit(&pair);
  MPI_Type_free(&sparse);
  return pair;
}

enum { n = 50 };
static int send[4 * n], recv[4 * n];

static void fill(int round) {
  for (int i = 0; i < 4 * n; ++i) send[i] = rank + round + i, recv[i] = -1;
}
static void check(int round, const char* what) {
  for (int i = 0; i < 4 * n; ++i)
    REQUIRE(recv[i] == (i % 2 ? -1 : size * (size - 1) / 2 + size * (round + i)), "%s", what);
}

#if HAS_PERSISTENT_COLLECTIVES
/* The first rank has started it when it frees the communicator, the others start theirs when they hear of that. */
static void start_late(void) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int mine = rank + 1, sum = 0, word = 0;
  MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  if (rank == 0) MPI_Start(&request);
  MPI_Comm_free(&comm);
  for (int r = 1; rank == 0 && r < size; ++r) MPI_Send(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
  if (rank > 0) {
    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(200000); /* the first one looks around meanwhile */
    MPI_Start(&request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  REQUIRE(sum == size * (size + 1) / 2, "started when the communicator had gone");
  MPI_Request_free(&request);
}
#endif

SCENARIO(freed) {
  MPI_Request request;
  for (int round = 0; round < 100; ++round) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Datatype pair = make_pair();
    fill(round);
    MPI_Iallreduce(send, recv, n, pair, op, MPI_COMM_WORLD, &request);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    CHECK(op == MPI_OP_NULL && pair == MPI_DATATYPE_NULL);
    MPI_Datatype other = make_pair(); /* may get the number of what was freed */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(round, "freed while it is under way");
    MPI_Type_free(&other);
  }
  CHECK(calls > 0 || size == 1, "the operator was called");
}

/* What is to be started again and again. */
SCENARIO(freed_planned) {
#if HAS_PERSISTENT_COLLECTIVES
  MPI_Request request;
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Datatype pair = make_pair();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Allreduce_init(send, recv, n, pair, op, comm, MPI_INFO_NULL, &request);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  MPI_Comm_free(&comm);
  for (int round = 0; round < 20; ++round) {
    fill(round);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(round, "freed before it is started");
  }
  MPI_Request_free(&request);
  start_late();
#endif
}
