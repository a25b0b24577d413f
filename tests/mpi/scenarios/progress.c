/* What needs a rank that waits for something else: each runs on the plain hosts. Two ranks take part, others look on.
 */
#include "scenarios.h"

/* ---- sends that find no room until the receiver, which waits elsewhere, takes them in */

static void meet(const char* how) {
  MPI_Request request;
  if (!strcmp(how, "barrier")) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(how, "allreduce")) {
    int one = 1, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == size, "allreduce");
  } else if (!strcmp(how, "large-allreduce")) {
    enum { n = 1 << 18 };
    double* data = calloc(n, sizeof *data);
    MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(data);
  } else if (!strcmp(how, "allgatherv")) {
    int counts[64], places[64], gathered[64];
    for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = i;
    MPI_Allgatherv(&rank, 1, MPI_INT, gathered, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; ++i) CHECK(gathered[i] == i, "allgatherv");
  } else if (!strcmp(how, "ibarrier-wait")) {
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (!strcmp(how, "ibarrier-waitall")) {
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  } else if (!strcmp(how, "ibarrier-test")) {
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  } else if (!strcmp(how, "dup")) {
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_free(&dup);
  } else if (!strcmp(how, "win")) {
    static int memory[4];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
  } else if (!strcmp(how, "message")) {
    char other;
    MPI_Sendrecv("x", 1, MPI_CHAR, rank ^ 1, 99, &other, 1, MPI_CHAR, rank ^ 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(how, "ssend-recv")) {
    char other;
    if (rank == 0) MPI_Ssend("x", 1, MPI_CHAR, 1, 99, MPI_COMM_WORLD);
    else MPI_Recv(&other, 1, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (!strcmp(how, "probe")) {
    if (rank == 0) MPI_Send("x", 1, MPI_CHAR, 1, 99, MPI_COMM_WORLD);
    char other;
    if (rank == 1) MPI_Probe(0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv(&other, 1, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static const char* const ways_to_meet[] = {"barrier",       "allreduce",     "large-allreduce",  "allgatherv",
                                           "ibarrier-wait", "ibarrier-test", "ibarrier-waitall", "dup",
                                           "win",           "message",       "ssend-recv",       "probe"};

static void unread(int messages, int bytes, int late) {
  char* data = malloc((size_t)bytes);
  for (size_t how = 0; how < sizeof ways_to_meet / sizeof *ways_to_meet; ++how) {
    const int among_two = how >= 9;
    if (rank == 0) {
      if (late) usleep(50000); /* the receiver sleeps by then */
      for (int i = 0; i < messages; ++i) {
        memset(data, i & 0x7f, (size_t)bytes);
        MPI_Send(data, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
      }
    }
    if (!among_two || rank < 2) meet(ways_to_meet[how]);
    if (rank == 1)
      for (int i = 0; i < messages; ++i) {
        MPI_Recv(data, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(data[0] == (i & 0x7f) && data[bytes - 1] == (i & 0x7f), "%s", ways_to_meet[how]);
      }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(data);
}

/* ---- sends under way when a communicator's first collective is called */

static void first_collective(int messages, int bytes) {
  char* data = calloc((size_t)messages, (size_t)bytes);
  MPI_Request* requests = malloc((size_t)messages * sizeof *requests);
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  if (rank == 0) {
    for (int i = 0; i < messages; ++i)
      MPI_Isend(data + (size_t)i * (size_t)bytes, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(dup);
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
  } else {
    if (rank == 1)
      for (int i = 0; i < messages; ++i) MPI_Recv(data, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(dup);
  }
  MPI_Comm_free(&dup);
  free(requests);
  free(data);
}

/* ---- callbacks of the program, called by the host inside of blocking calls, communicate */

static int delete_talks(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  int sum = 0, one = 1, from = -1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size, "allreduce in a callback");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &from, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(from == (rank + size - 1) % size, "message in a callback");
  return MPI_SUCCESS;
}

static void* allocated;
static int delete_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  delete_talks(comm, key, value, extra);
  MPI_Free_mem(allocated);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("called back at the end"), fflush(stdout);
  return MPI_SUCCESS;
}

static void callbacks(void) {
  int key;
  MPI_Comm dup;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_talks, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_set_attr(dup, key, NULL);
  MPI_Comm_free(&dup);
}

/* ---- one-sided operations of the host on a target that waits in a barrier */

static void windows(void) {
  static long memory[16];
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  if (rank == 0) {
    long one = 1, before = 0;
    for (int i = 0; i < 2000; ++i) {
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
      MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, win);
      MPI_Win_unlock(1, win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    CHECK(memory[0] == 2000, "one-sided operations are lost");
    MPI_Win_unlock(1, win);
  }
  MPI_Win_free(&win);
}

/* ---- a flush of buffered sends to oneself */

static void flush(void) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
  enum { n = 200000 };
  char *buffer = malloc(n + MPI_BSEND_OVERHEAD), *data = calloc(1, n), *back = malloc(n);
  MPI_Request request;
  MPI_Buffer_attach(buffer, n + MPI_BSEND_OVERHEAD);
  data[n - 1] = 7;
  MPI_Bsend(data, n, MPI_CHAR, rank, 3, MPI_COMM_WORLD);
  MPI_Buffer_iflush(&request);
  MPI_Recv(back, n, MPI_CHAR, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(back[n - 1] == 7, "buffered message");
  int length;
  void* at;
  MPI_Buffer_detach(&at, &length);
  CHECK(at == buffer, "detached buffer");
  free(buffer), free(data), free(back);
#endif
}

SCENARIO(progress_unread) {
  unread(1000, 1024, 0);
  unread(20000, 8, 0);
  unread(60, 4096, 1);
}
SCENARIO(progress_much_unread) {
  unread(20000, 1024, 0);
  unread(1500, 12000, 0);
}
SCENARIO(progress_first_collective) {
  first_collective(1, 4 << 20);
  first_collective(1000, 1024);
  first_collective(40, 100000);
}
SCENARIO(progress_callbacks) { callbacks(); }
SCENARIO(progress_windows) { windows(); }
SCENARIO(progress_flush) { flush(); }
/* In MPI_Finalize: what is checked counts for the exit status. */
SCENARIO(progress_at_end) {
  int key;
  MPI_Alloc_mem(100000, MPI_INFO_NULL, &allocated);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}
