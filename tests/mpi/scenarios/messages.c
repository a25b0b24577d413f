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

/* Persistent buffered sends: each start sends what is there then, and is complete whatever the receiver does. */
static void buffered_again(void) {
  enum { longest = 5000, rounds = 12 };
  static const int lengths[] = {0, 1, 100, longest};
  const int peer = (rank + 1) % size, before = (rank + size - 1) % size;
  char* const attached = malloc(1 << 20);
  MPI_Datatype pairs;
  MPI_Type_vector(longest / 2, 1, 2, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
  MPI_Buffer_attach(attached, 1 << 20);
  for (int k = 0; k < 6; ++k) {
    const int n = k < 4 ? lengths[k] : longest / 2, sparse = k >= 4;
    static int out[longest], in[longest];
    MPI_Request request;
    if (sparse) MPI_Bsend_init(out, 1, pairs, k == 5 ? MPI_PROC_NULL : peer, k, MPI_COMM_WORLD, &request);
    else MPI_Bsend_init(out, n, MPI_INT, peer, k, MPI_COMM_WORLD, &request);
    for (int round = 0; round < rounds; ++round) {
      int flag = round % 4 < 2;
      const double start = now();
      for (int i = 0; i < longest; ++i) out[i] = 1000 * rank + 7 * round + i;
      if (round % 2) MPI_Start(&request);
      else MPI_Startall(1, &request);
      if (round % 3 == 0) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
      while (!flag && now() < start + 10) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      REQUIRE(flag, "%d ints, round %d", n, round);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int round = 0; round < rounds && k != 5; ++round) {
      memset(in, -1, sizeof in);
      MPI_Recv(in, n, MPI_INT, before, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < n; ++i) REQUIRE(in[i] == 1000 * before + 7 * round + (1 + sparse) * i, "round %d", round);
    }
    MPI_Request_free(&request);
  }
  void* detached;
  int detached_size;
  MPI_Buffer_detach(&detached, &detached_size);
  MPI_Type_free(&pairs);
  free(attached);
}

/* A rank that blocks in a call of the host takes part in the transfers of the others. */
static void host_blocks(void) {
  enum { n = 1 << 20 };
  char *out = malloc(n), *in = malloc(n), small[64] = {0};
  int counts[64];
  for (int i = 0; i < size; ++i) counts[i] = 1;
  char gathered[64];
  const int peer = rank ^ 1;
  for (int round = 0; round < 20; ++round) {
    memset(out, round + rank, n);
    MPI_Request request;
    if (rank % 2 == 0) {
      MPI_Irecv(in, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
      MPI_Reduce_scatter(small, gathered, counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(in[0] == (char)(round + peer) && in[n - 1] == (char)(round + peer));
    } else {
      MPI_Ssend(out, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
      MPI_Reduce_scatter(small, gathered, counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
    MPI_Comm dup;
    if (rank % 2 == 1) {
      MPI_Irecv(in, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
      MPI_Comm_dup(MPI_COMM_WORLD, &dup);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Ssend(out, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
      MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    }
    MPI_Comm_free(&dup);
  }
  free(out);
  free(in);
}

/* Messages of one communicator never match receives of another, however it was made. */
static void contexts(void) {
  enum { all = 9 };
  MPI_Comm comms[all];
  MPI_Request request;
  MPI_Group group, part;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
  MPI_Comm_create(MPI_COMM_WORLD, group, &comms[2]);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comms[3]);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comms[4]);
  MPI_Comm_idup(MPI_COMM_WORLD, &comms[5], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_dup(comms[0], &comms[6]);
  int periods = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &comms[7]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[8]);
  /* A part of the ranks makes one among themselves, which the others do not notice. */
  int range[1][3] = {{0, size - 1, 2}};
  MPI_Group_range_incl(group, 1, range, &part);
  MPI_Comm even = MPI_COMM_NULL, later;
  if (rank % 2 == 0) MPI_Comm_create_group(MPI_COMM_WORLD, part, 9, &even);
  MPI_Comm_dup(MPI_COMM_WORLD, &later);
  int in[all], out[all];
  MPI_Request requests[2 * all];
  for (int c = 0; c < all; ++c) {
    int me;
    MPI_Comm_rank(comms[c], &me);
    MPI_Irecv(&in[c], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &requests[c]);
  }
  for (int c = all - 1; c >= 0; --c) {
    int me;
    MPI_Comm_rank(comms[c], &me);
    out[c] = c * 1000;
    MPI_Isend(&out[c], 1, MPI_INT, (me + 1) % size, 7, comms[c], &requests[all + c]);
  }
  MPI_Waitall(2 * all, requests, MPI_STATUSES_IGNORE);
  for (int c = 0; c < all; ++c) CHECK(in[c] == c * 1000);
  int last = -1, mine = rank;
  MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &last, 1, MPI_INT, (rank + size - 1) % size, 0, later,
               MPI_STATUS_IGNORE);
  CHECK(last == (rank + size - 1) % size);
  if (even != MPI_COMM_NULL) {
    int r, p;
    MPI_Comm_rank(even, &r);
    MPI_Comm_size(even, &p);
    MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % p, 0, &last, 1, MPI_INT, (r + p - 1) % p, 0, even, MPI_STATUS_IGNORE);
    CHECK(last == (r + p - 1) % p);
    MPI_Comm_free(&even);
  }
  for (int c = 0; c < all; ++c) MPI_Comm_free(&comms[c]);
  MPI_Comm_free(&later);
  MPI_Group_free(&group);
  MPI_Group_free(&part);
}

static void* talk(void* argument) {
  const int tag = (int)(long)argument, peer = (rank + 1) % size, before = (rank + size - 1) % size;
  long bad = 0;
  int* buffer = malloc(400000);
  for (int i = 0; i < 300; ++i) {
    const int n = i % 10 ? 1 + i : 100000;
    MPI_Request request;
    int* out = calloc(n, sizeof *out);
    out[n - 1] = i * 10 + tag;
    MPI_Isend(out, n, MPI_INT, peer, tag, MPI_COMM_WORLD, &request);
    MPI_Recv(buffer, 100000, MPI_INT, i % 3 ? before : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bad += buffer[n - 1] != i * 10 + tag;
    free(out);
  }
  free(buffer);
  return (void*)bad;
}

static void threads(void) {
  pthread_t thread[3];
  long bad = 0;
  for (long t = 0; t < 3; ++t) pthread_create(&thread[t], NULL, talk, (void*)t);
  for (int t = 0; t < 3; ++t) {
    void* result;
    pthread_join(thread[t], &result);
    bad += (long)result;
  }
  CHECK(bad == 0, "%ld messages", bad);
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
SCENARIO(messages_host_blocks) { host_blocks(); }
SCENARIO(messages_buffered_again) { buffered_again(); }
SCENARIO(messages_contexts) { contexts(); }
SCENARIO(messages_threads) { threads(); }
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
