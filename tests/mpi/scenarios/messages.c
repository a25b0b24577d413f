/* Scenarios of point to point. */
#include "scenarios.h"

static void errors(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value[4] = {1, 2, 3, 4};
  const int peer = (rank + 1) % size, before = (rank + size - 1) % size;
  CHECK(class_of(MPI_Send(value, 1, MPI_INT, size + 3, 0, comm)) == MPI_ERR_RANK);
  CHECK(class_of(MPI_Send(value, 1, MPI_INT, peer, -5, comm)) == MPI_ERR_TAG);
  CHECK(class_of(MPI_Send(value, -1, MPI_INT, peer, 0, comm)) == MPI_ERR_COUNT);
  CHECK(class_of(MPI_Recv(value, 1, MPI_INT, size, 0, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
  /* Truncation: an eager message, one in a transfer; blocking, in an array of requests. */
  const int lengths[] = {4, 200000};
  for (int k = 0; k < 2; ++k) {
    const int n = lengths[k];
    int *out = calloc(n, sizeof *out), *in = calloc(n, sizeof *in);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Isend(out, n, MPI_INT, peer, 1, comm, &requests[0]);
    CHECK(class_of(MPI_Recv(in, n / 2, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Isend(out, n, MPI_INT, peer, 2, comm, &requests[0]);
    MPI_Irecv(in, n / 2, MPI_INT, before, 2, comm, &requests[1]);
    CHECK(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_SUCCESS && class_of(statuses[1].MPI_ERROR) == MPI_ERR_TRUNCATE);
    /* The next message is not lost. */
    out[0] = 77;
    MPI_Sendrecv(out, n, MPI_INT, peer, 3, in, n, MPI_INT, before, 3, comm, MPI_STATUS_IGNORE);
    CHECK(in[0] == 77);
    free(out);
    free(in);
  }
  /* Buffered sends: no room, then room. */
  char *attached = malloc(4096 + MPI_BSEND_OVERHEAD), *data = calloc(1, 8192);
  MPI_Buffer_attach(attached, 4096 + MPI_BSEND_OVERHEAD);
  CHECK(class_of(MPI_Bsend(data, 8192, MPI_BYTE, peer, 4, comm)) == MPI_ERR_BUFFER);
  CHECK(MPI_Bsend(data, 4096, MPI_BYTE, peer, 4, comm) == MPI_SUCCESS);
  MPI_Recv(data, 4096, MPI_BYTE, before, 4, comm, MPI_STATUS_IGNORE);
  void* detached;
  int detached_size;
  MPI_Buffer_detach(&detached, &detached_size);
  CHECK(detached == attached && detached_size == 4096 + MPI_BSEND_OVERHEAD);
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
  /* A flush does not wait for later messages. */
  enum { apiece = 1 << 18 };
  char* const room = malloc(2 * (apiece + MPI_BSEND_OVERHEAD));
  char *const buffered = calloc(1, apiece), *const come = malloc(apiece);
  MPI_Request flushed;
  MPI_Buffer_attach(room, 2 * (apiece + MPI_BSEND_OVERHEAD));
  MPI_Bsend(buffered, apiece, MPI_BYTE, peer, 5, comm);
  MPI_Buffer_iflush(&flushed);
  MPI_Bsend(buffered, apiece, MPI_BYTE, peer, 6, comm);
  MPI_Recv(come, apiece, MPI_BYTE, before, 5, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&flushed, MPI_STATUS_IGNORE);
  MPI_Recv(come, apiece, MPI_BYTE, before, 6, comm, MPI_STATUS_IGNORE);
  MPI_Buffer_detach(&detached, &detached_size);
  CHECK(detached == room);
#endif
  /* And without a buffer, where Open MPI sends what is short at once. */
#ifdef OPEN_MPI
  for (int i = 0; i < 20; ++i) CHECK(MPI_Bsend(data, 4000, MPI_BYTE, peer, 4, comm) == MPI_SUCCESS);
  for (int i = 0; i < 20; ++i) MPI_Recv(data, 4000, MPI_BYTE, before, 4, comm, MPI_STATUS_IGNORE);
  CHECK(class_of(MPI_Bsend(data, 8192, MPI_BYTE, peer, 4, comm)) == MPI_ERR_BUFFER);
#else
  CHECK(class_of(MPI_Bsend(data, 8, MPI_BYTE, peer, 4, comm)) == MPI_ERR_BUFFER);
#endif
  MPI_Comm_free(&comm);
}

/* Requests that nobody waits for, and messages that are still on their way at the end. */
static void unattended(void) {
  enum { n = 1 << 18 };
  static char out[n], in[n];
  memset(out, 5, n);
  MPI_Request request;
  const int peer = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Isend(out, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Irecv(in, n, MPI_BYTE, before, 1, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Sendrecv(out, 1, MPI_BYTE, peer, 2, in, 1, MPI_BYTE, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) {
    MPI_Send(out, n, MPI_BYTE, 0 == size - 1 ? 0 : size - 1, 3, MPI_COMM_WORLD);
  } else if (rank == size - 1) {
    usleep(200000);
    MPI_Recv(in, n, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[n - 1] == 5);
  }
}

/* A wrong program: nobody receives. It still ends. */
static void never_received(void) {
  enum { n = 1 << 20 };
  static char out[n];
  MPI_Request request;
  MPI_Isend(out, n, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &request);
  MPI_Irecv(out, n, MPI_BYTE, (rank + 1) % size, 2, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

SCENARIO(messages_errors) { errors(); }
SCENARIO(messages_unattended) { unattended(); }
SCENARIO(messages_never_received) { never_received(); }

/* A stream whose sender is ahead of its receiver: 1000 messages of 8 bytes, received one by one once all have been
 * sent. */
SCENARIO(messages_ahead) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) usleep(500000);
  for (long i = 0; i < 1000; ++i) {
    long got = i;
    if (rank == 0) MPI_Send(&i, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(&got, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == i);
  }
  /* An answer, for the row of statistics, which ranks have that send. */
  char answer = 0;
  if (rank == 1) MPI_Send(&answer, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  else MPI_Recv(&answer, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* MPI_Bsend finds its buffer free as soon as the receiver has what was in it, while another thread polls. The receiver
 * tells that by memory, so that nothing but MPI_Bsend learns of the end of the message. */
static void* poll_for_nothing(void* unused) {
  int done = 0, in;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &request);
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  (void)unused;
  return NULL;
}
SCENARIO(messages_buffered_beside_polls) {
  enum { n = 1 << 18, rounds = 500 };
  int provided, unit;
  MPI_Query_thread(&provided);
  REQUIRE(provided == MPI_THREAD_MULTIPLE, "threads are needed");
  char *const data = calloc(1, n), *const room = malloc(n + MPI_BSEND_OVERHEAD);
  int* received;
  MPI_Aint bytes;
  MPI_Win win;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Win_allocate_shared(rank ? 0 : sizeof *received, 1, MPI_INFO_NULL, comm, &received, &win);
  MPI_Win_shared_query(win, 0, &bytes, &unit, &received);
  if (rank == 0) *received = 0;
  MPI_Barrier(comm);
  if (rank == 0) {
    void* detached;
    int length;
    pthread_t other;
    MPI_Buffer_attach(room, n + MPI_BSEND_OVERHEAD);
    pthread_create(&other, NULL, poll_for_nothing, NULL);
    for (int i = 0; i < rounds; ++i) {
      while (__atomic_load_n(received, __ATOMIC_ACQUIRE) < i) usleep(0);
      CHECK(MPI_Bsend(data, n, MPI_CHAR, 1, 0, comm) == MPI_SUCCESS);
    }
    pthread_join(other, NULL);
    MPI_Buffer_detach(&detached, &length);
    CHECK(detached == room);
  } else if (rank == 1) {
    for (int i = 0; i < rounds; ++i) {
      MPI_Recv(data, n, MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE);
      __atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
    }
    MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);
  free(data);
  free(room);
}
