/* Wrong calls on windows, one line each: what was wrong, the error class, whether the window's error handler saw it.
 * Errors are returned to one window and handled on another, with the same results. */
#include "scenarios.h"

static int seen, phase;
static const char* kind;

static void handler(MPI_Win* win, int* code, ...) {
  (void)win;
  (void)code;
  seen = 1;
}

static void report(const char* what, int code) {
  if (rank == 0)
    printf("%s, %s, %d: class %d, handler %s\n", kind, what, phase, class_of(code), seen ? "called" : "not called");
  fflush(stdout);
  seen = 0;
}

static void first_of_two(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in;
  (void)inout;
  (void)count;
  (void)type;
}

static double a[64], b[64], c[64];

/* Wrong arguments within an epoch in which right ones would do. */
static void arguments(MPI_Win win) {
  const int far = size + 3;
  MPI_Op user;
  MPI_Datatype loose;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Op_create(first_of_two, 1, &user);
  MPI_Type_contiguous(2, MPI_DOUBLE, &loose);
  report("put, rank", MPI_Put(a, 1, MPI_DOUBLE, far, 0, 1, MPI_DOUBLE, win));
  report("put, negative rank", MPI_Put(a, 1, MPI_DOUBLE, -7, 0, 1, MPI_DOUBLE, win));
  report("get, rank", MPI_Get(a, 1, MPI_DOUBLE, far, 0, 1, MPI_DOUBLE, win));
  report("put, count", MPI_Put(a, -1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win));
  report("put, target count", MPI_Put(a, 1, MPI_DOUBLE, 0, 0, -1, MPI_DOUBLE, win));
  report("get, count", MPI_Get(a, -1, MPI_DOUBLE, 0, 0, -1, MPI_DOUBLE, win));
  report("put, no type", MPI_Put(a, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_DOUBLE, win));
  report("put, no target type", MPI_Put(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DATATYPE_NULL, win));
  report("put, type not committed", MPI_Put(a, 1, loose, 0, 0, 1, loose, win));
  report("get, type not committed", MPI_Get(a, 1, loose, 0, 0, 1, loose, win));
  report("put, negative displacement", MPI_Put(a, 1, MPI_DOUBLE, 0, -1, 1, MPI_DOUBLE, win));
  report("accumulate, rank", MPI_Accumulate(a, 1, MPI_DOUBLE, far, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  report("accumulate, count", MPI_Accumulate(a, -1, MPI_DOUBLE, 0, 0, -1, MPI_DOUBLE, MPI_SUM, win));
  report("accumulate, user's operator", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, user, win));
  report("accumulate, no operator", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_OP_NULL, win));
  report("accumulate, nothing", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_NO_OP, win));
#ifdef OMPI_MAJOR_VERSION /* the others abort */
  report("accumulate, and of doubles", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win));
#endif
  report("get_accumulate, user's operator",
         MPI_Get_accumulate(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, user, win));
  report("get_accumulate, result count",
         MPI_Get_accumulate(a, 1, MPI_DOUBLE, b, -1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  report("fetch_and_op, rank", MPI_Fetch_and_op(a, b, MPI_DOUBLE, far, 0, MPI_SUM, win));
  report("fetch_and_op, user's operator", MPI_Fetch_and_op(a, b, MPI_DOUBLE, 0, 0, user, win));
  report("fetch_and_op, no type", MPI_Fetch_and_op(a, b, MPI_DATATYPE_NULL, 0, 0, MPI_SUM, win));
  report("compare_and_swap, rank", MPI_Compare_and_swap(a, b, c, MPI_INT64_T, far, 0, win));
  report("compare_and_swap, no type", MPI_Compare_and_swap(a, b, c, MPI_DATATYPE_NULL, 0, 0, win));
  report("compare_and_swap, double", MPI_Compare_and_swap(a, b, c, MPI_DOUBLE, 0, 0, win));
  report("rput, rank", MPI_Rput(a, 1, MPI_DOUBLE, far, 0, 1, MPI_DOUBLE, win, &request));
  report("rget, count", MPI_Rget(a, -1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win, &request));
  report("put to nobody", MPI_Put(a, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, 1, MPI_DOUBLE, win));
  report("flush, rank", MPI_Win_flush(far, win));
  report("flush_local, rank", MPI_Win_flush_local(far, win));
  MPI_Op_free(&user);
  MPI_Type_free(&loose);
}

/* Calls outside of epochs, and calls that close what is not open. */
static void synchronization(MPI_Win win) {
  report("put outside", MPI_Put(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win));
  report("get outside", MPI_Get(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win));
  report("accumulate outside", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  report("fetch_and_op outside", MPI_Fetch_and_op(a, b, MPI_DOUBLE, 0, 0, MPI_SUM, win));
  report("unlock of nothing", MPI_Win_unlock(0, win));
  report("unlock_all of nothing", MPI_Win_unlock_all(win));
  report("complete of nothing", MPI_Win_complete(win));
  report("wait of nothing", MPI_Win_wait(win));
  int flag = 0;
  report("test of nothing", MPI_Win_test(win, &flag));
  report("flush outside", MPI_Win_flush(0, win));
  report("flush_all outside", MPI_Win_flush_all(win));
  report("lock, type", MPI_Win_lock(12345, 0, 0, win));
  report("lock, rank", MPI_Win_lock(MPI_LOCK_SHARED, size + 3, 0, win));
  report("lock, assert", MPI_Win_lock(MPI_LOCK_SHARED, size + 3, 1 << 20, win));
  report("fence, assert", MPI_Win_fence(1 << 30, win));
}

static void within_locks(MPI_Win win) {
  report("lock", MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  report("lock twice", MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  report("lock_all within lock", MPI_Win_lock_all(0, win));
#ifdef OMPI_MAJOR_VERSION /* the others abort, or worse */
  report("put where not locked", MPI_Put(a, 1, MPI_DOUBLE, size - 1, 0, 1, MPI_DOUBLE, win));
  report("unlock of another", MPI_Win_unlock(size - 1, win));
#endif
  report("unlock", MPI_Win_unlock(0, win));
}

static void no_window(void) {
  int flag;
  report("put", MPI_Put(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_WIN_NULL));
  report("accumulate", MPI_Accumulate(a, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, MPI_WIN_NULL));
  report("fetch_and_op", MPI_Fetch_and_op(a, b, MPI_DOUBLE, 0, 0, MPI_SUM, MPI_WIN_NULL));
  report("fence", MPI_Win_fence(0, MPI_WIN_NULL));
  report("lock", MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, MPI_WIN_NULL));
  report("unlock", MPI_Win_unlock(0, MPI_WIN_NULL));
  report("lock_all", MPI_Win_lock_all(0, MPI_WIN_NULL));
  report("flush", MPI_Win_flush(0, MPI_WIN_NULL));
  report("flush_all", MPI_Win_flush_all(MPI_WIN_NULL));
  report("sync", MPI_Win_sync(MPI_WIN_NULL));
  report("post", MPI_Win_post(MPI_GROUP_EMPTY, 0, MPI_WIN_NULL));
  report("start", MPI_Win_start(MPI_GROUP_EMPTY, 0, MPI_WIN_NULL));
  report("complete", MPI_Win_complete(MPI_WIN_NULL));
  report("wait", MPI_Win_wait(MPI_WIN_NULL));
  report("test", MPI_Win_test(MPI_WIN_NULL, &flag));
  MPI_Win none = MPI_WIN_NULL;
  report("free", MPI_Win_free(&none));
}

static void creation(void) {
  MPI_Win win;
  void* base;
  double memory[8];
  report("create, unit", MPI_Win_create(memory, sizeof memory, 0, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  report("create, negative unit", MPI_Win_create(memory, sizeof memory, -4, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  report("create, size", MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  report("create, communicator", MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win));
  report("allocate, size", MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  report("allocate, communicator", MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
  report("shared, communicator", MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
  report("dynamic, communicator", MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win));
}

static void errors(const char* what) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Errhandler ours;
  MPI_Win_create_errhandler(handler, &ours);
  kind = what;
  if (!strcmp(what, "null")) no_window();
  if (!strcmp(what, "creation")) creation();
  for (phase = 0; phase < 2; ++phase) {
    MPI_Win win;
    double* base;
    MPI_Win_allocate(64 * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, phase ? ours : MPI_ERRORS_RETURN);
    if (!strcmp(what, "arguments")) {
      MPI_Win_lock_all(0, win);
      arguments(win);
      MPI_Win_unlock_all(win);
    }
    if (!strcmp(what, "epochs")) synchronization(win);
    if (!strcmp(what, "locks")) within_locks(win);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The window still works. */
    double one = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    base[9] = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    report("afterwards", MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, 9, 1, MPI_DOUBLE, MPI_SUM, win));
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    if (rank == 0) REQUIRE(base[9] == size, "the window lost %g", size - base[9]);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
  }
  MPI_Errhandler_free(&ours);
}

/* Open MPI frees windows in any epoch; the others refuse. */
SCENARIO(window_freed_in_epochs) {
#ifdef OPEN_MPI
  for (int epoch = 0; epoch < 4; ++epoch) {
    MPI_Win win;
    double* base;
    MPI_Group all;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_get_group(win, &all);
    if (epoch == 0 && rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
    if (epoch == 1) MPI_Win_lock_all(0, win);
    if (epoch == 2) MPI_Win_post(all, 0, win);
    if (epoch == 3) MPI_Win_post(all, 0, win), MPI_Win_start(all, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(MPI_Win_free(&win) == MPI_SUCCESS && win == MPI_WIN_NULL, "not freed in epoch %d", epoch);
    MPI_Group_free(&all);
  }
#endif
}
SCENARIO(window_errors) { errors(argv[1]); }
