/* Several threads use communicators and datatypes for the first time at once, and make communicators of groups. */
#include "scenarios.h"

enum { threads = 4 };
static int rounds, wrong;
static pthread_barrier_t meeting;
static MPI_Comm fresh;
static MPI_Datatype type;
static MPI_Group everybody;

static void* work(void* of) {
  const int me = (int)(long)of, peer = rank ^ 1;
  int out[64], in[64];
  for (int round = 0; round < rounds; ++round) {
    if (me == 0) {
      MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
      MPI_Type_vector(8, 2, 5, MPI_INT, &type);
      MPI_Type_commit(&type);
    }
    pthread_barrier_wait(&meeting);
    MPI_Comm child;
    int got = -1;
    if (peer < size) {
      for (int i = 0; i < 64; ++i) out[i] = round + rank + i, in[i] = -1;
      MPI_Sendrecv(out, 1, type, peer, me, in, 1, type, peer, me, fresh, MPI_STATUS_IGNORE);
      for (int i = 0; i < 64; ++i) {
        const int expected = i < 40 && i % 5 < 2 ? round + peer + i : -1;
        if (in[i] != expected) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
      }
    }
    MPI_Comm_create_group(fresh, everybody, me, &child);
    if (peer < size) {
      MPI_Sendrecv(&me, 1, MPI_INT, peer, 0, &got, 1, MPI_INT, peer, 0, child, MPI_STATUS_IGNORE);
      if (got != me) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    }
    MPI_Comm_free(&child);
    pthread_barrier_wait(&meeting);
    if (me == 0) {
      MPI_Type_free(&type);
      MPI_Comm_free(&fresh);
    }
  }
  return NULL;
}

#if MPI_VERSION >= 4
/* Looks after the library in a loop, by way of the session's communicator. */
static MPI_Comm of_session;
static int stop;
static void* poll(void* nothing) {
  int flag;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    MPI_Request request;
    int value = 0, zero = 0;
    MPI_Irecv(&value, 1, MPI_INT, 0, 99, of_session, &request);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Send(&zero, 1, MPI_INT, 0, 99, of_session);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return nothing;
}

static void beside_a_session(void) {
  MPI_Session session;
  MPI_Info info;
  MPI_Group self;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  if (MPI_Session_init(info, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return;
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://SELF", &self);
  MPI_Comm_create_from_group(self, "first_use", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &of_session);
  MPI_Group_free(&self);
  pthread_t other;
  pthread_create(&other, NULL, poll, NULL);
  enum { n = 3000 };
  static int out[n], in[n];
  const int peer = rank ^ 1;
  for (int round = 0; round < rounds && peer < size; ++round) {
    for (int i = 0; i < n; ++i) out[i] = round * 7 + rank + i;
    MPI_Sendrecv(out, 1 + round * 37 % n, MPI_INT, peer, 0, in, n, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += in[round * 37 % n] != round * 7 + peer + round * 37 % n;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(other, NULL);
  MPI_Comm_free(&of_session);
  MPI_Session_finalize(&session);
}
#else
static void beside_a_session(void) {}
#endif

/* The argument of both is how many rounds. */
SCENARIO(first_use) {
  int provided;
  rounds = atoi(argv[1]);
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  pthread_t thread[threads];
  pthread_barrier_init(&meeting, NULL, threads);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  for (long t = 0; t < threads; ++t) pthread_create(&thread[t], NULL, work, (void*)t);
  for (int t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
  MPI_Group_free(&everybody);
  pthread_barrier_destroy(&meeting);
  CHECK(!wrong, "%d wrong", wrong);
}
/* The world has one thread and a session several: one thread of each works. */
SCENARIO(first_use_session) {
  rounds = atoi(argv[1]);
  beside_a_session();
  CHECK(!wrong, "%d wrong", wrong);
}
