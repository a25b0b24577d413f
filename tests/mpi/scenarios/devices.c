/* Calls with buffers in device memory, of a run-time (programs/fake_cuda.c) that is loaded after MPI_Init. Odd ranks
   use ordinary memory: the two must meet. */
#include "scenarios.h"

static int (*cu_alloc)(uintptr_t*, size_t);
static int (*cu_managed)(uintptr_t*, size_t, unsigned);
static int (*cu_copy)(uintptr_t, uintptr_t, size_t);
static int (*cu_push)(void*);
static int (*cu_pop)(void**);
static void* primary;
static int* fails;     /* whether copies fail */
static int is_on_host; /* the memory of this rank's buffers */

static int* room(int n) {
  uintptr_t at = 0;
  if (is_on_host) return malloc(sizeof(int) * (size_t)n);
  void* popped;
  cu_push(primary);
  if (cu_alloc(&at, sizeof(int) * (size_t)n)) abort();
  cu_pop(&popped); /* calls of MPI find no context */
  return (int*)at;
}
static void move(void* to, const void* from, int n) {
  void* popped;
  if (is_on_host) {
    memcpy(to, from, sizeof(int) * (size_t)n);
    return;
  }
  cu_push(primary);
  if (cu_copy((uintptr_t)to, (uintptr_t)from, sizeof(int) * (size_t)n)) abort();
  cu_pop(&popped);
}
static void fill(int* to, int n, int first) {
  int* values = malloc(sizeof(int) * (size_t)n);
  for (int i = 0; i < n; ++i) values[i] = first + i;
  move(to, values, n);
  free(values);
}
/* Whether element i is first + step * i. */
static void expect(const char* what, const int* from, int n, int first, int step) {
  int* values = malloc(sizeof(int) * (size_t)n);
  move(values, from, n);
  for (int i = 0; i < n; ++i) {
    if (!CHECK(values[i] == first + step * i, "%s of %d: element %d is %d", what, n, i, values[i])) break;
  }
  free(values);
}

static void test(int n) {
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  int *a = room(n), *b = room(n), *all = room(n * size), *other = room(n * size);
  MPI_Request requests[2];
  MPI_Status status;
  fill(a, n, rank * 1000);

  fill(b, n, -1);
  MPI_Sendrecv(a, n, MPI_INT, next, 1, b, n, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
  expect("Sendrecv", b, n, last * 1000, 1);

  fill(b, n, -1);
  if (rank % 2) {
    MPI_Recv(b, n, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(a, n, MPI_INT, next, 2, MPI_COMM_WORLD);
  } else {
    MPI_Ssend(a, n, MPI_INT, next, 2, MPI_COMM_WORLD);
    MPI_Recv(b, n, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  expect("Send and Recv", b, n, last * 1000, 1);

  fill(b, n, -1);
  MPI_Irecv(b, n, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(a, n, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect("Irecv", b, n, last * 1000, 1);

  MPI_Recv_init(b, n, MPI_INT, last, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(a, n, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    fill(a, n, rank * 1000 + i);
    MPI_Startall(2, requests);
    int done = 0;
    while (!done) MPI_Request_get_status(requests[0], &done, MPI_STATUS_IGNORE);
    expect("Startall", b, n, last * 1000 + i, 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  fill(a, n, rank * 1000);

  MPI_Datatype every_other; /* gaps stay as they are */
  MPI_Type_vector(n / 2, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  fill(b, n, 0);
  MPI_Isend(a, 1, every_other, next, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Recv(b, n / 2, MPI_INT, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  expect("a vector sent", b, n / 2, last * 1000, 2);
  fill(b, n, 0);
  MPI_Isend(b, n / 2, MPI_INT, next, 6, MPI_COMM_WORLD, &requests[1]);
  fill(all, n, 0);
  MPI_Recv(all, 1, every_other, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  if (n >= 2) expect("a vector's gap", all + 1, 1, 1, 0);

  MPI_Message message;
  fill(b, n, -1);
  MPI_Isend(a, n, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Mprobe(last, 7, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(b, n, MPI_INT, &message, &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  expect("Mrecv", b, n, last * 1000, 1);

  fill(b, n, rank == 1 ? 77 : -1);
  MPI_Bcast(b, n, MPI_INT, 1, MPI_COMM_WORLD);
  expect("Bcast", b, n, 77, 1);
  MPI_Allgather(a, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) expect("Allgather", all + r * n, n, r * 1000, 1);
  for (int r = 0; r < size; ++r) fill(all + r * n, n, rank * 1000 + r * 10);
  MPI_Alltoall(all, n, MPI_INT, other, n, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) expect("Alltoall", other + r * n, n, r * 1000 + rank * 10, 1);
  int counts[64], places[64];
  for (int r = 0; r < size; ++r) counts[r] = n, places[r] = r * n;
  for (int r = 0; r < size; ++r) fill(other + r * n, n, -1);
  MPI_Alltoallv(all, counts, places, MPI_INT, other, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) expect("Alltoallv", other + r * n, n, r * 1000 + rank * 10, 1);
  MPI_Gather(a, n, MPI_INT, all, n, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; ++r) expect("Gather", all + r * n, n, r * 1000, 1);
  MPI_Scatter(all, n, MPI_INT, b, n, MPI_INT, 0, MPI_COMM_WORLD);
  expect("Scatter", b, n, rank * 1000, 1);

  const int sum = 1000 * size * (size - 1) / 2;
  MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("Allreduce", b, n, sum, size);
  fill(b, n, rank * 1000);
  MPI_Allreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("Allreduce in place", b, n, sum, size);
  MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) expect("Reduce", b, n, sum, size);
  for (int r = 0; r < size; ++r) fill(all + r * n, n, rank * 1000 + r);
  MPI_Reduce_scatter_block(all, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("Reduce_scatter_block", b, n, sum + size * rank, size);
}

static void load(const char* library) {
  void* cuda = dlopen(library, RTLD_NOW);
  REQUIRE(cuda, "%s", dlerror());
  cu_alloc = (int (*)(uintptr_t*, size_t))dlsym(cuda, "cuMemAlloc_v2");
  cu_managed = (int (*)(uintptr_t*, size_t, unsigned))dlsym(cuda, "cuMemAllocManaged");
  cu_copy = (int (*)(uintptr_t, uintptr_t, size_t))dlsym(cuda, "cuMemcpy");
  cu_push = (int (*)(void*))dlsym(cuda, "cuCtxPushCurrent_v2");
  cu_pop = (int (*)(void**))dlsym(cuda, "cuCtxPopCurrent_v2");
  fails = (int*)dlsym(cuda, "fails");
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
  REQUIRE(!init(0) && !retain(&primary, 0), "no device");
}

/* The argument is the library. */
SCENARIO(devices) {
  MPI_Barrier(MPI_COMM_WORLD);
  is_on_host = rank % 2;
  if (!is_on_host) {
    load(argv[1]);
    uintptr_t shared = 0;
    void* popped;
    cu_push(primary);
    cu_managed(&shared, 1 << 16, 1);
    cu_pop(&popped);
    int* both = (int*)shared;
    both[0] = rank;
    MPI_Sendrecv_replace(both, 1, MPI_INT, rank, 9, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(both[0] == rank);
  }
  test(2);
  test(300);
  test(40000);
  test(400000);
}

static int raised;
static void count_raised(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code, ++raised; }

/* What is received cannot be copied to the device of the odd ranks: each call calls their error handler once. */
SCENARIO(devices_failing) {
  enum { n = 300 };
  MPI_Errhandler handler;
  MPI_Barrier(MPI_COMM_WORLD);
  is_on_host = rank % 2 == 0;
  if (!is_on_host) load(argv[1]);
  int *const got = room(n * size), given[n * 64];
  memset(given, 0, sizeof given);
  MPI_Comm_create_errhandler(count_raised, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  if (fails) *fails = 1;
  for (int op = 0; op < 10; ++op) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    raised = 0;
    if (op >= 8) MPI_Isend(given, n, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &request);
    switch (op) {
      case 0: code = MPI_Bcast(got, n, MPI_INT, 0, MPI_COMM_WORLD); break;
      case 1: MPI_Ibcast(got, n, MPI_INT, 0, MPI_COMM_WORLD, &request); break;
      case 2: code = MPI_Allgather(given, n, MPI_INT, got, n, MPI_INT, MPI_COMM_WORLD); break;
      case 3: MPI_Iallgather(given, n, MPI_INT, got, n, MPI_INT, MPI_COMM_WORLD, &request); break;
      case 4: code = MPI_Allreduce(given, got, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
      case 5: MPI_Iallreduce(given, got, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request); break;
      case 6: code = MPI_Alltoall(given, n, MPI_INT, got, n, MPI_INT, MPI_COMM_WORLD); break;
      case 7: code = MPI_Scatter(given, n, MPI_INT, got, n, MPI_INT, 0, MPI_COMM_WORLD); break;
      case 8: code = MPI_Recv(got, n, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
      default: {
        MPI_Request receive;
        MPI_Irecv(got, n, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &receive);
        code = MPI_Wait(&receive, MPI_STATUS_IGNORE);
      }
    }
    if (request != MPI_REQUEST_NULL && op < 8) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(raised == !is_on_host && (code != MPI_SUCCESS) == !is_on_host, "operation %d: code %d, raised %d times", op,
          code, raised);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (fails) *fails = 0;
  MPI_Errhandler_free(&handler);
}

/* The sums of a communicator's first calls, of floats that begin at rank 0 on a device: the same as all others. */
static void sum_floats(MPI_Comm comm, int n) {
  int me, p;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &p);
  float *mine = (float*)room(n), *all = (float*)room(n), *given = malloc(sizeof(float) * (size_t)n),
        *got = malloc(sizeof(float) * (size_t)n), *first = malloc(sizeof(float) * (size_t)n);
  for (int i = 0; i < n; ++i) given[i] = 1.f / (float)(3 + 7 * me + i) * (me % 2 ? 1e6f : 1);
  move(mine, given, n);
  for (int call = 0; call < 24; ++call) {
    const int root = call / 2 % p, in_place = call % 4 == 2;
    if (in_place) move(all, given, n);
    if (call % 2 == 0) MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, all, n, MPI_FLOAT, MPI_SUM, comm);
    else MPI_Reduce(mine, all, n, MPI_FLOAT, MPI_SUM, root, comm);
    if (call % 2 && me != root) continue;
    move(call ? got : first, all, n);
    if (call) REQUIRE(!memcmp(got, first, sizeof(float) * (size_t)n), "call %d of %d floats, %d ranks", call, n, p);
  }
  free(given);
  free(got);
  free(first);
}

/* Rank 0 alone loads the library, the argument, between two calls: nobody else can know of it. */
SCENARIO(devices_of_one_rank) {
  MPI_Comm whole, half;
  MPI_Comm_dup(MPI_COMM_WORLD, &whole);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 3, -rank, &half);
  if (rank == 0) load(argv[1]);
  is_on_host = rank != 0;
  for (int n = 1; n < 20000; n *= 9) {
    MPI_Comm dup;
    MPI_Comm_dup(half, &dup);
    sum_floats(dup, n);
    MPI_Comm_free(&dup);
  }
  sum_floats(half, 100);
  sum_floats(whole, 3);
  MPI_Comm_free(&whole);
  MPI_Comm_free(&half);
}
