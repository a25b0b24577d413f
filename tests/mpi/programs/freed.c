/* Operators and types that are freed while requests still need them, and communicators. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static void expect(int good, const char* what) {
  if (good) return;
  printf("FAILED: %s\n", what);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
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

static void fill(int rank, int round) {
  for (int i = 0; i < 4 * n; ++i) send[i] = rank + round + i, recv[i] = -1;
}
static void check(int size, int round, const char* what) {
  for (int i = 0; i < 4 * n; ++i) expect(recv[i] == (i % 2 ? -1 : size * (size - 1) / 2 + size * (round + i)), what);
}

#if MPI_VERSION >= 4 || defined(OPEN_MPI)
/* The first rank has started it when it frees the communicator, the others start theirs when they hear of that. */
static void start_late(int rank, int size) {
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
  expect(sum == size * (size + 1) / 2, "started when the communicator had gone");
  MPI_Request_free(&request);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Request request;
  for (int round = 0; round < 100; ++round) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Datatype pair = make_pair();
    fill(rank, round);
    MPI_Iallreduce(send, recv, n, pair, op, MPI_COMM_WORLD, &request);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    expect(op == MPI_OP_NULL && pair == MPI_DATATYPE_NULL, "the handles are null");
    MPI_Datatype other = make_pair(); /* may get the number of what was freed */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(size, round, "freed while it is under way");
    MPI_Type_free(&other);
  }
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
  if (argc > 1) {
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
      fill(rank, round);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check(size, round, "freed before it is started");
    }
    MPI_Request_free(&request);
  }
  if (argc > 1) start_late(rank, size);
#endif
  expect(calls > 0 || size == 1, "the operator was called");
  MPI_Finalize();
  printf("good\n");
  return 0;
}
