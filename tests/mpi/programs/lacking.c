/* Everything in turn, where one rank may lack memory or descriptors at any call (inject.c).
 *
 * lacking abort    a rank that gets an error ends the job
 * lacking go-on    it goes on, as all ranks must that get the same error
 *
 * Prints "rank R: OPERATION: error CLASS" for every error, "wrong data" where success was reported and the result is
 * not right, "crashed" when a signal comes, and "through" at the end. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <execinfo.h>

static int rank, size, aborts, errors;

static void crash(int signal) {
  char line[64];
  const int length = snprintf(line, sizeof line, "rank %d: crashed by signal %d\n", rank, signal);
  if (write(2, line, (size_t)length) < 0) _exit(98);
  void* stack[32];
  backtrace_symbols_fd(stack, backtrace(stack, 32), 2);
  _exit(99);
}

static int good(const char* what, int code) {
  if (code == MPI_SUCCESS) return 1;
  int class = 0;
  MPI_Error_class(code, &class);
  fprintf(stderr, "rank %d: %s: error %d\n", rank, what, class);
  ++errors;
  if (aborts) {
    MPI_Abort(MPI_COMM_WORLD, 3);
    for (;;) pause(); /* some hosts return before the launcher acts */
  }
  return 0;
}
static void check(const char* what, int right) {
  if (!right) fprintf(stderr, "rank %d: %s: wrong data\n", rank, what);
}

/* Blocks of `count` ints per rank, all operations, once. */
static void collectives(MPI_Comm comm, int count, int in_heap) {
  int p, me;
  MPI_Comm_size(comm, &p);
  MPI_Comm_rank(comm, &me);
  const size_t all = (size_t)count * (size_t)p;
  int *a = NULL, *b = NULL;
  if (in_heap) {
    a = malloc(all * sizeof *a);
    b = malloc(all * sizeof *b);
  } else if (!good("Alloc_mem", MPI_Alloc_mem((MPI_Aint)(all * sizeof *a), MPI_INFO_NULL, &a)) ||
             !good("Alloc_mem", MPI_Alloc_mem((MPI_Aint)(all * sizeof *b), MPI_INFO_NULL, &b))) {
    a = malloc(all * sizeof *a);
    b = malloc(all * sizeof *b);
    in_heap = 1;
  }
  const size_t last = all - 1, own = (size_t)count;
#define FILL                                                          \
  for (size_t i = 0; i < all; ++i) a[i] = me + (int)(i / own), b[i] = -1
  FILL;
  good("Barrier", MPI_Barrier(comm));
  if (me) a[0] = a[count - 1] = -7;
  if (good("Bcast", MPI_Bcast(a, count, MPI_INT, 0, comm))) check("Bcast", a[0] == 0 && a[count - 1] == 0);
  FILL;
  if (good("Reduce", MPI_Reduce(a, b, count, MPI_INT, MPI_SUM, p - 1, comm)))
    check("Reduce", me != p - 1 || b[count - 1] == p * (p - 1) / 2);
  FILL;
  if (good("Allreduce", MPI_Allreduce(a, b, count, MPI_INT, MPI_SUM, comm)))
    check("Allreduce", b[0] == p * (p - 1) / 2 && b[count - 1] == b[0]);
  FILL;
  if (good("Scan", MPI_Scan(a, b, count, MPI_INT, MPI_SUM, comm))) check("Scan", b[count - 1] == me * (me + 1) / 2);
  FILL;
  if (good("Exscan", MPI_Exscan(a, b, count, MPI_INT, MPI_SUM, comm)))
    check("Exscan", me == 0 || b[count - 1] == me * (me - 1) / 2);
  FILL;
  MPI_Request sum = MPI_REQUEST_NULL, met = MPI_REQUEST_NULL;
  const int summing = good("Iallreduce", MPI_Iallreduce(a, b, count, MPI_INT, MPI_SUM, comm, &sum));
  good("Ibarrier", MPI_Ibarrier(comm, &met));
  if (good("Wait for Iallreduce", MPI_Wait(&sum, MPI_STATUS_IGNORE)) && summing)
    check("Iallreduce", b[0] == p * (p - 1) / 2 && b[count - 1] == b[0]);
  good("Wait for Ibarrier", MPI_Wait(&met, MPI_STATUS_IGNORE));
  FILL;
  if (good("Reduce_scatter_block", MPI_Reduce_scatter_block(a, b, count, MPI_INT, MPI_SUM, comm)))
    check("Reduce_scatter_block", b[count - 1] == p * (p - 1) / 2 + p * me);
  FILL;
  if (good("Allgather", MPI_Allgather(a, count, MPI_INT, b, count, MPI_INT, comm)))
    check("Allgather", b[last] == p - 1 && b[0] == 0);
  FILL;
  if (good("Gather", MPI_Gather(a, count, MPI_INT, b, count, MPI_INT, 0, comm)))
    check("Gather", me || b[last] == p - 1);
  FILL;
  if (good("Scatter", MPI_Scatter(a, count, MPI_INT, b, count, MPI_INT, 0, comm)))
    check("Scatter", b[count - 1] == me);
  FILL;
  if (good("Alltoall", MPI_Alltoall(a, count, MPI_INT, b, count, MPI_INT, comm)))
    check("Alltoall", b[last] == p - 1 + me && b[0] == me);
  int counts[64], places[64];
  for (int r = 0; r < p; ++r) counts[r] = count, places[r] = r * count;
  FILL;
  if (good("Alltoallv", MPI_Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, comm)))
    check("Alltoallv", b[last] == p - 1 + me && b[0] == me);
  /* A derived type: every other int, so half as many. */
  MPI_Datatype narrow, half;
  if (count >= 2 && good("Type_vector", MPI_Type_vector(count / 2, 1, 2, MPI_INT, &narrow)) &&
      good("Type_create_resized", MPI_Type_create_resized(narrow, 0, (MPI_Aint)(own * sizeof *a), &half)) &&
      good("Type_commit", MPI_Type_commit(&half))) {
    FILL;
    if (me) memset(a, 0xff, own * sizeof *a);
    if (good("Bcast of a derived type", MPI_Bcast(a, 1, half, 0, comm)))
      check("Bcast of a derived type", a[0] == 0 && a[count / 2 * 2 - 2] == 0);
    FILL;
    if (good("Allgather of a derived type", MPI_Allgather(a, 1, half, b, count / 2, MPI_INT, comm)))
      check("Allgather of a derived type", b[0] == 0 && b[(size_t)p * (size_t)(count / 2) - 1] == p - 1);
    FILL;
    if (good("Alltoall of a derived type", MPI_Alltoall(a, 1, half, b, 1, half, comm))) check("Alltoall of a derived type", b[0] == me);
    good("Type_free", MPI_Type_free(&half));
    good("Type_free", MPI_Type_free(&narrow));
  }
  if (in_heap) {
    free(a);
    free(b);
  } else {
    good("Free_mem", MPI_Free_mem(a));
    good("Free_mem", MPI_Free_mem(b));
  }
}

/* In a ring, of every length and kind. */
static void messages(MPI_Comm comm) {
  static const int lengths[] = {0, 1, 500, 5000, 50000, 400000};
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; ++k) {
    const int count = lengths[k];
    int* a = malloc((size_t)(count + 1) * sizeof *a);
    int* b = malloc((size_t)(count + 1) * sizeof *b);
    for (int i = 0; i < count; ++i) a[i] = rank + i, b[i] = -1;
    if (good("Sendrecv", MPI_Sendrecv(a, count, MPI_INT, to, 1, b, count, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE)))
      check("Sendrecv", !count || (b[0] == from && b[count - 1] == from + count - 1));
    for (int i = 0; i < count; ++i) b[i] = -1;
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int received = good("Irecv", MPI_Irecv(b, count, MPI_INT, from, 2, comm, &request[0]));
    const int sent = good("Issend", MPI_Issend(a, count, MPI_INT, to, 2, comm, &request[1]));
    if (good("Waitall", MPI_Waitall(2, request, MPI_STATUSES_IGNORE)) && received && sent)
      check("Issend", !count || b[count - 1] == from + count - 1);
    MPI_Datatype gaps;
    if (count >= 2 && good("Type_vector", MPI_Type_vector(count / 2, 1, 2, MPI_INT, &gaps)) &&
        good("Type_commit", MPI_Type_commit(&gaps))) {
      for (int i = 0; i < count; ++i) b[i] = -1;
      if (good("Sendrecv of a derived type",
               MPI_Sendrecv(a, 1, gaps, to, 3, b, 1, gaps, from, 3, comm, MPI_STATUS_IGNORE)))
        check("Sendrecv of a derived type", b[0] == from && b[1] == -1);
      good("Type_free", MPI_Type_free(&gaps));
    }
    free(a);
    free(b);
  }
}

/* A communicator whose first collectives do not wait. */
static void creating(void) {
  MPI_Comm comm;
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (!good("Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &comm))) return;
  enum { n = 20000 };
  static int given[n], got[n], word;
  for (int i = 0; i < n; ++i) given[i] = rank + i, got[i] = -1;
  word = rank ? -1 : 5;
  int right[3];
  right[0] = good("Iallreduce", MPI_Iallreduce(given, got, n, MPI_INT, MPI_SUM, comm, &requests[0]));
  right[1] = good("Ibcast", MPI_Ibcast(&word, 1, MPI_INT, 0, comm, &requests[1]));
  right[2] = good("Ibarrier", MPI_Ibarrier(comm, &requests[2]));
  for (int i = 0; i < 3; ++i) right[i] &= good("Wait", MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
  for (int i = 0; right[0] && i < n; i += 9999) check("Iallreduce", got[i] == size * (size - 1) / 2 + size * i);
  if (right[1]) check("Ibcast", word == 5);
  good("Comm_free", MPI_Comm_free(&comm));
}

/* Between the even and the odd ranks: operands are combined where they come. */
static void between_groups(int count) {
  MPI_Comm group, other;
  const int odd = rank % 2, others = odd ? (size + 1) / 2 : size / 2;
  if (!good("Comm_split", MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &group))) return;
  if (good("Intercomm_create", MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - odd, 5, &other))) {
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    int* a = malloc((size_t)count * sizeof *a);
    int* b = malloc((size_t)count * sizeof *b);
    const int sum = odd ? others * (others - 1) : others * others;
    for (int i = 0; i < count; ++i) a[i] = rank, b[i] = -1;
    if (good("Allreduce between groups", MPI_Allreduce(a, b, count, MPI_INT, MPI_SUM, other)))
      check("Allreduce between groups", b[0] == sum && b[count - 1] == sum);
    MPI_Request request = MPI_REQUEST_NULL;
    const int begun = good("Iallreduce between groups", MPI_Iallreduce(a, b, count, MPI_INT, MPI_MAX, other, &request));
    if (good("Wait for Iallreduce between groups", MPI_Wait(&request, MPI_STATUS_IGNORE)) && begun)
      check("Iallreduce between groups", b[0] == 2 * others - 1 - odd && b[count - 1] == b[0]);
    const int root = odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    if (good("Reduce between groups", MPI_Reduce(a, b, count, MPI_INT, MPI_SUM, root, other)))
      check("Reduce between groups", root != MPI_ROOT || b[count - 1] == sum);
    free(a);
    free(b);
    good("Comm_free", MPI_Comm_free(&other));
  }
  good("Comm_free", MPI_Comm_free(&group));
}

int main(int argc, char** argv) {
  aborts = argc > 1 && strcmp(argv[1], "abort") == 0;
  const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 5; ++i) signal(signals[i], crash);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  collectives(MPI_COMM_WORLD, 2, 1);
  collectives(MPI_COMM_WORLD, 2000, 0);
  collectives(MPI_COMM_WORLD, 100000, 1);
  messages(MPI_COMM_WORLD);
  MPI_Comm twin = MPI_COMM_NULL, part = MPI_COMM_NULL;
  if (good("Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &twin))) {
    collectives(twin, 300, 1);
    messages(twin);
    good("Comm_free", MPI_Comm_free(&twin));
  }
  creating();
  between_groups(300);
  between_groups(20000);
  if (good("Comm_split", MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part))) {
    collectives(part, 20000, 1);
    good("Comm_free", MPI_Comm_free(&part));
  }
  MPI_Win window;
  int* memory;
  if (good("Win_allocate",
           MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window))) {
    memory[0] = -1;
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    check("Put", memory[0] == (rank + size - 1) % size);
    good("Win_free", MPI_Win_free(&window));
  }
  MPI_Finalize();
  printf("rank %d: through, %d errors\n", rank, errors);
  return 0;
}
