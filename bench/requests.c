/* What a request costs beside many others: 10, 1,000 and 100,000 (or as many as given) of every kind are begun, and
   then completed, by two ranks. Microseconds of each, of the slower rank: what grows with their number is a walk over
   all of them. Arrays that are looked at as a whole for every one (Waitany, Waitsome) grow under every host.

     mpicc -O2 bench/requests.c -o requests && nearfield run mpiexec -n 2 ./requests [most [kind]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 100000, large = 192 << 10, middle = 20 << 10, small = 2000, few = 1000 };

static MPI_Comm comm;
static MPI_Request request[most];
static int rank, other, number[most], place[most];
static char here[large], there[large]; /* no heap's: peers cannot reach it */

static void send(int i, int bytes) { MPI_Isend(here, bytes, MPI_BYTE, other, i, comm, &request[i]); }
static void receive(int i, int bytes) { MPI_Recv(there, bytes, MPI_BYTE, other, i, comm, MPI_STATUS_IGNORE); }
static void wait_all(int n) { MPI_Waitall(n, request, MPI_STATUSES_IGNORE); }

static void from_first(int n, int bytes, int backwards) {
  for (int i = 0; rank == 0 && i < n; ++i) send(i, bytes);
  for (int i = 0; rank == 1 && i < n; ++i) receive(backwards ? n - 1 - i : i, bytes);
  if (rank == 0) wait_all(n);
}
static void sends(int n) { from_first(n, small, 0); }
static void sends_backwards(int n) { from_first(n, small, 1); }
static void middle_sends(int n) { from_first(n, middle, 0); }
static void large_sends(int n) { from_first(n, large, 0); }
static void large_backwards(int n) { from_first(n, large, 1); }

/* The first waits for each by itself, in the order in which the second receives them: the last one first. */
static void one_by_one(int n, int bytes, int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) {
  for (int i = 0; rank == 0 && i < n; ++i) start(here, bytes, MPI_BYTE, other, i, comm, &request[i]);
  for (int i = n; i-- > 0;) {
    if (rank == 1) receive(i, bytes);
    else MPI_Wait(&request[i], MPI_STATUS_IGNORE);
  }
}
static void large_one_by_one(int n) { one_by_one(n, large, MPI_Isend); }
static void synchronous_one_by_one(int n) { one_by_one(n, 4, MPI_Issend); }
static void large_posted(int n) {
  for (int i = 0; rank == 1 && i < n; ++i) MPI_Irecv(there, large, MPI_BYTE, other, i, comm, &request[i]);
  MPI_Barrier(comm);
  for (int i = 0; rank == 0 && i < n; ++i) send(i, large);
  wait_all(n);
}

static void buffered_sends(int n) {
  const int room = n * (small + MPI_BSEND_OVERHEAD);
  void* const buffer = malloc(room);
  MPI_Buffer_attach(buffer, room);
  for (int i = 0; rank == 0 && i < n; ++i) MPI_Bsend(here, small, MPI_BYTE, other, i, comm);
  MPI_Barrier(comm);
  for (int i = 0; rank == 1 && i < n; ++i) receive(i, small);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  free(buffer);
}
/* They are never received. */
static void cancelled_sends(int n) {
  for (int i = 0; rank == 0 && i < n; ++i) MPI_Issend(here, 4, MPI_BYTE, other, 0, comm, &request[i]);
  for (int i = n; rank == 0 && i-- > 0;) {
    MPI_Cancel(&request[i]);
    MPI_Wait(&request[i], MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
}

static void freed_sends(int n) {
  for (int i = 0; rank == 0 && i < n; ++i) {
    send(i, small);
    MPI_Request_free(&request[i]);
  }
  for (int i = 0; rank == 1 && i < n; ++i) receive(i, small);
}

/* Integers, from the first to the second, which has posted its receives. */
static void post(int n) {
  for (int i = 0; rank == 1 && i < n; ++i) MPI_Irecv(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
  MPI_Barrier(comm);
}
static void posted_receives(int n) {
  post(n);
  for (int i = n; rank == 0 && i-- > 0;) MPI_Send(&number[i], 1, MPI_INT, other, i, comm);
  if (rank == 1) wait_all(n);
}
/* Half of them by tag, of these every other one from anybody; then with any tag. */
static void wildcards(int n) {
  for (int i = 0; rank == 1 && i < n; ++i)
    MPI_Irecv(&number[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : other, i < n / 2 ? i : MPI_ANY_TAG, comm, &request[i]);
  MPI_Barrier(comm);
  for (int i = n / 2; rank == 0 && i-- > 0;) MPI_Send(&number[i], 1, MPI_INT, other, i, comm);
  for (int i = n / 2; rank == 0 && i < n; ++i) MPI_Send(&number[i], 1, MPI_INT, other, n, comm);
  if (rank == 1) wait_all(n);
}
static void pairs(int n) {
  post(n);
  for (int i = 0; rank == 0 && i < n; ++i) MPI_Issend(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
}
static void waitall(int n) {
  pairs(n);
  wait_all(n);
}
static void testall(int n) {
  pairs(n);
  for (int done = 0; !done;) MPI_Testall(n, request, &done, MPI_STATUSES_IGNORE);
}
static void waitsome(int n) {
  pairs(n);
  for (int left = n, done; left > 0; left -= done) MPI_Waitsome(n, request, &done, place, MPI_STATUSES_IGNORE);
}
static void waitany(int n) {
  pairs(n);
  for (int i = 0, which; i < n; ++i) MPI_Waitany(n, request, &which, MPI_STATUS_IGNORE);
}
static void testany(int n) {
  pairs(n);
  for (int left = n, which, done; left > 0; left -= done) MPI_Testany(n, request, &which, &done, MPI_STATUS_IGNORE);
}

static void probes(int n) {
  for (int i = 0; rank == 0 && i < n; ++i) send(i, 4);
  for (int i = n; rank == 1 && i-- > 0;) {
    MPI_Probe(other, i, comm, MPI_STATUS_IGNORE);
    receive(i, 4);
  }
  if (rank == 0) wait_all(n);
}
static void cancelled_receives(int n) {
  for (int i = 0; i < n; ++i) MPI_Irecv(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
  for (int i = n; i-- > 0;) {
    MPI_Cancel(&request[i]);
    MPI_Wait(&request[i], MPI_STATUS_IGNORE);
  }
}
static void persistent(int n) {
  for (int i = 0; i < n; ++i)
    if (rank == 0) MPI_Send_init(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
    else MPI_Recv_init(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
  for (int start = 0; start < 3; ++start) {
    MPI_Startall(n, request);
    wait_all(n);
  }
  for (int i = 0; i < n; ++i) MPI_Request_free(&request[i]);
}
static void to_ourselves(int n) {
  for (int i = 0; i < n; ++i) MPI_Isend(&number[i], 1, MPI_INT, rank, i, comm, &request[i]);
  for (int i = n; i-- > 0;) MPI_Recv(&place[i], 1, MPI_INT, rank, i, comm, MPI_STATUS_IGNORE);
  wait_all(n);
}
static void collectives(int n) {
  for (int i = 0; i < n; ++i) MPI_Ibcast(&number[i], 1, MPI_INT, 0, comm, &request[i]);
  wait_all(n);
}
static void one_sided(int n) {
  MPI_Win win;
  int* memory;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < n; ++i) MPI_Rput(&number[i], 1, MPI_INT, other, 0, 1, MPI_INT, win, &request[i]);
  wait_all(n);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
static int release(void* state) { return state == NULL ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel(void* state, int complete) { return state == NULL || complete ? MPI_SUCCESS : MPI_ERR_OTHER; }
/* The host's requests between ours. */
static void generalized(int n) {
  post(n);
  for (int i = 0; rank == 0 && i < n; ++i) MPI_Isend(&number[i], 1, MPI_INT, other, i, comm, &request[i]);
  for (int i = 0; rank == 0 && i < n; i += 2) {
    MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    MPI_Grequest_start(query, release, cancel, NULL, &request[i]);
    MPI_Grequest_complete(request[i]);
  }
  wait_all(n);
}

#define KIND(name, at_most) {#name, name, at_most}
static const struct {
  const char* name;
  void (*run)(int n);
  int at_most;
} kinds[] = {
    KIND(sends, most), KIND(sends_backwards, most), KIND(middle_sends, most), KIND(large_sends, most),
    KIND(large_backwards, most), KIND(large_posted, most), KIND(large_one_by_one, most),
    KIND(synchronous_one_by_one, most), KIND(buffered_sends, most), KIND(freed_sends, most),
    KIND(cancelled_sends, most), KIND(posted_receives, most), KIND(wildcards, most), KIND(waitall, most),
    KIND(testall, most), KIND(waitsome, most), KIND(waitany, most / 10), KIND(testany, most / 10), KIND(probes, most),
    KIND(cancelled_receives, most), KIND(persistent, most), KIND(to_ourselves, most), KIND(collectives, few),
    KIND(one_sided, most), KIND(generalized, most)};

static double microseconds_each(void (*run)(int), int n) {
  MPI_Barrier(comm);
  const double start = MPI_Wtime();
  run(n);
  double took = MPI_Wtime() - start, longest;
  MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return 1e6 * longest / n;
}

int main(int argc, char** argv) {
  static const int counts[] = {10, 1000, 100000};
  MPI_Init(&argc, &argv);
  comm = MPI_COMM_WORLD;
  MPI_Comm_rank(comm, &rank);
  other = 1 - rank;
  const int limit = argc > 1 ? atoi(argv[1]) : most;
  if (rank == 0) printf("%-20s %10d %10d %10d  us each\n", "", counts[0], counts[1], counts[2]);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    if (argc > 2 && strcmp(argv[2], kinds[k].name) != 0) continue;
    if (rank == 0) printf("%-20s", kinds[k].name);
    for (size_t c = 0; c < 3; ++c) {
      int n = counts[c] < kinds[k].at_most ? counts[c] : kinds[k].at_most;
      if (n > limit) n = limit;
      const double each = microseconds_each(kinds[k].run, n);
      if (rank == 0) printf(n == counts[c] ? " %10.2f" : " %9.2f*", each), fflush(stdout);
    }
    if (rank == 0) printf("\n");
  }
  if (rank == 0) printf("* of fewer: %d, %d or %d at most\n", few, most / 10, limit);
  MPI_Finalize();
}
