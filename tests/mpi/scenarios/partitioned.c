/* Partitioned messages.

     threads      threads mark partitions and ask what has arrived while the first one waits
     order        starts in another order than inits, freed ones that were never started, a receiver that blocks
     undescribed  types of so many blocks that no description of them is kept
     errors       wrong calls, a line each */
#include "scenarios.h"

#if HAS_PARTITIONED

static int value(int message, int start, long i) { return (int)(i * 7 + start * 100003 + message * 1009 + 1); }

/* From the first rank to the last. */
struct message {
  int sends, receives, sent_in, received_in;
  long ints;
  MPI_Request send, receive;
  int *out, *in;
};

static struct message one_message(int sent_in, int received_in, long ints) {
  struct message m = {rank == 0, rank == size - 1, sent_in, received_in, ints, MPI_REQUEST_NULL, MPI_REQUEST_NULL, 0,
                      0};
  m.out = calloc((size_t)ints, sizeof(int));
  m.in = calloc((size_t)ints, sizeof(int));
  if (m.sends)
    MPI_Psend_init(m.out, sent_in, ints / sent_in, MPI_INT, size - 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &m.send);
  if (m.receives)
    MPI_Precv_init(m.in, received_in, ints / received_in, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &m.receive);
  return m;
}
static void check(const struct message* m, int start, int partition) {
  const long ints = m->ints / m->received_in;
  for (long i = partition * ints; i < (partition + 1) * ints; ++i)
    REQUIRE(m->in[i] == value(0, start, i), "start %d, element %ld", start, i);
}
static void check_all(const struct message* m, int start) {
  for (int p = 0; p < m->received_in; ++p) check(m, start, p);
}
static void end(struct message* m) {
  if (m->sends) MPI_Request_free(&m->send);
  if (m->receives) MPI_Request_free(&m->receive);
  free(m->out), free(m->in);
}

enum { threads = 4 };
struct work {
  struct message* m;
  int first, start;
};
static void* mark_some(void* argument) {
  const struct work* w = argument;
  for (int p = w->first; p < w->m->sent_in; p += threads) {
    const long ints = w->m->ints / w->m->sent_in;
    for (long i = p * ints; i < (p + 1) * ints; ++i) w->m->out[i] = value(0, w->start, i);
    MPI_Pready(p, w->m->send);
  }
  return NULL;
}
static void* watch_some(void* argument) {
  const struct work* w = argument;
  for (int p = w->first; p < w->m->received_in; p += threads) {
    int flag = 0;
    while (!flag) MPI_Parrived(w->m->receive, p, &flag);
    check(w->m, w->start, p);
  }
  return NULL;
}
static void with_threads(int times) {
  static const int shapes[][2] = {{16, 16}, {32, 8}, {4, 12}};
  for (int which = 0; which < 9; ++which) {
    const int* shape = shapes[which % 3];
    struct message m = one_message(shape[0], shape[1], shape[0] * shape[1] * (which < 3 ? 2 : which < 6 ? 100 : 2000));
    for (int start = 0; start < times; ++start) {
      pthread_t started[2 * threads];
      struct work work[threads];
      int n = 0;
      if (m.receives) {
        memset(m.in, -1, sizeof(int) * (size_t)m.ints);
        MPI_Start(&m.receive);
      }
      if (m.sends) MPI_Start(&m.send);
      for (int t = 0; t < threads; ++t) {
        work[t] = (struct work){&m, t, start};
        if (m.sends) pthread_create(&started[n++], NULL, mark_some, &work[t]);
        if (m.receives) pthread_create(&started[n++], NULL, watch_some, &work[t]);
      }
      if (m.sends && start % 2) MPI_Wait(&m.send, MPI_STATUS_IGNORE); /* before all are marked */
      for (int t = 0; t < n; ++t) pthread_join(started[t], NULL);
      if (m.sends) MPI_Wait(&m.send, MPI_STATUS_IGNORE);
      if (m.receives) {
        MPI_Wait(&m.receive, MPI_STATUS_IGNORE);
        check_all(&m, start);
      }
    }
    end(&m);
  }
}

static void order(void) {
  enum { several = 5, long_ones = 200000 };
  const int peer = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request sends[several], receives[several], unused[2];
  static int out[several][4], in[several][4];
  for (int k = 0; k < several; ++k) {
    MPI_Psend_init(out[k], 4, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[k]);
    MPI_Precv_init(in[k], 4, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[k]);
    if (k != 1) continue; /* takes its place all the same */
    MPI_Psend_init(out[k], 4, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &unused[0]);
    MPI_Precv_init(in[k], 4, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &unused[1]);
    for (int i = 0; i < 2; ++i) MPI_Request_free(&unused[i]);
  }
  for (int k = 0; k < several; ++k)
    for (int i = 0; i < 4; ++i) out[k][i] = value(k, rank, i);
  MPI_Startall(several, receives);
  for (int k = several; k-- > 0;) {
    MPI_Start(&sends[k]);
    MPI_Pready_range(0, 3, sends[k]);
  }
  MPI_Waitall(several, sends, MPI_STATUSES_IGNORE);
  MPI_Waitall(several, receives, MPI_STATUSES_IGNORE);
  for (int k = 0; k < several; ++k)
    for (int i = 0; i < 4; ++i) REQUIRE(in[k][i] == value(k, before, i), "another message's data: %d, %d", k, i);
  for (int k = 0; k < several; ++k) MPI_Request_free(&sends[k]), MPI_Request_free(&receives[k]);

  /* The receive is there before the send is initialised, and its rank waits for something else: for a message, and in
     the host. */
  static int large[2][4 * long_ones];
  for (int elsewhere = 0; elsewhere < 2; ++elsewhere) {
    MPI_Request request = MPI_REQUEST_NULL;
    int token = 1;
    MPI_Comm alone;
    if (rank == 1) {
      MPI_Precv_init(large[0], 8, long_ones / 2, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
      if (!elsewhere) MPI_Recv(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
      MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      usleep(20000);
      MPI_Psend_init(large[1], 4, long_ones, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      for (long i = 0; i < 4 * long_ones; ++i) large[1][i] = value(elsewhere, 0, i);
      MPI_Pready_range(0, 3, request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!elsewhere) MPI_Send(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    }
    if (elsewhere) {
      MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
      MPI_Comm_free(&alone);
    }
    if (rank == 1) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (long i = 0; i < 4 * long_ones; ++i)
        REQUIRE(large[0][i] == value(elsewhere, 0, i), "late send, element %ld, elsewhere %d", i, elsewhere);
    }
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

/* Two partitions of a type of many separate blocks, as four of ints and the other way round. */
static void undescribed(void) {
  const int blocks = 4500000;
  const long ints = 2L * blocks, extent = 3L * blocks;
  int* places = malloc(sizeof(int) * (size_t)blocks);
  for (int i = 0; i < blocks; ++i) places[i] = 2 * i + (i % 3 == 1);
  MPI_Datatype indexed, type;
  MPI_Type_create_indexed_block(blocks, 1, places, MPI_INT, &indexed);
  MPI_Type_create_resized(indexed, 0, extent * (long)sizeof(int), &type);
  MPI_Type_commit(&type);
  int *sparse = malloc(sizeof(int) * 2 * (size_t)extent), *flat = malloc(sizeof(int) * (size_t)ints);
#define AT(i) (with_type ? sparse[(i) / blocks * extent + places[(i) % blocks]] : flat[i])
  for (int way = 0; way < 2; ++way) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int sender = rank == 0, with_type = sender != way;
    for (long i = 0; i < ints; ++i) {
      sparse[i / blocks * extent + places[i % blocks]] = sender ? value(way, 0, i) : -1;
      flat[i] = sender ? value(way, 0, i) : -1;
    }
    if (rank < 2) {
      void* const at = with_type ? (void*)sparse : (void*)flat;
      const MPI_Datatype of = with_type ? type : MPI_INT;
      const int partitions = with_type ? 2 : 4;
      const MPI_Count n = with_type ? 1 : ints / 4;
      if (sender) MPI_Psend_init(at, partitions, n, of, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      else MPI_Precv_init(at, partitions, n, of, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      for (int p = partitions; sender && p-- > 0;) MPI_Pready(p, request);
      for (int flag = 0; !sender && !flag;) MPI_Parrived(request, 1, &flag);
      for (long i = ints / 4; rank == 1 && i < ints / 2; ++i) REQUIRE(AT(i) == value(way, 0, i), "way %d, %ld", way, i);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
    }
    for (long i = 0; rank == 1 && i < ints; ++i) REQUIRE(AT(i) == value(way, 0, i), "way %d, %ld", way, i);
  }
  MPI_Type_free(&type);
  MPI_Type_free(&indexed);
  free(places), free(sparse), free(flat);
}

static int seen;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++seen;
}
static void say(const char* what, int code) {
  const int class = class_of(code);
  const char* name = class == MPI_SUCCESS        ? "success"
                     : class == MPI_ERR_ARG      ? "argument"
                     : class == MPI_ERR_COUNT    ? "count"
                     : class == MPI_ERR_RANK     ? "rank"
                     : class == MPI_ERR_TAG      ? "tag"
                     : class == MPI_ERR_REQUEST  ? "request"
                     : class == MPI_ERR_TRUNCATE ? "truncated"
                                                 : "another";
  if (rank == 0) printf("%s: %s%s\n", what, name, seen ? ", handled" : "");
  seen = 0;
}
static void errors(void) {
  MPI_Comm comm = MPI_COMM_SELF;
  MPI_Errhandler errhandler;
  MPI_Comm_create_errhandler(handler, &errhandler);
  MPI_Comm_set_errhandler(comm, errhandler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
  int out[8] = {0}, in[8], flag;
  MPI_Request send, receive, ordinary, bad;
  MPI_Status status;
  say("negative partitions", MPI_Psend_init(out, -1, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &bad));
  say("negative count", MPI_Precv_init(in, 4, -2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &bad));
  say("any source", MPI_Precv_init(in, 4, 2, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_INFO_NULL, &bad));
  say("any tag", MPI_Precv_init(in, 4, 2, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_INFO_NULL, &bad));
  say("rank", MPI_Psend_init(out, 4, 2, MPI_INT, 7, 1, comm, MPI_INFO_NULL, &bad));
  say("send", MPI_Psend_init(out, 4, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &send));
  say("receive", MPI_Precv_init(in, 4, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &receive));
  say("not started", MPI_Pready(0, send));
  say("not started, arrived", MPI_Parrived(receive, 0, &flag));
  MPI_Start(&send);
  MPI_Start(&receive);
  say("started twice", MPI_Start(&send));
  say("beyond the last", MPI_Pready(4, send));
  say("before the first", MPI_Pready(-1, send));
  say("range", MPI_Pready_range(2, 4, send));
  say("range backwards", MPI_Pready_range(2, 1, send));
  say("good", MPI_Pready(2, send));
  say("twice", MPI_Pready(2, send));
  int list[] = {0, 2};
  say("twice in a list", MPI_Pready_list(2, list, send));
  say("of a receive", MPI_Pready(1, receive));
  say("arrival of a send", MPI_Parrived(send, 1, &flag));
  say("arrival beyond the last", MPI_Parrived(receive, 4, &flag));
  MPI_Send_init(out, 1, MPI_INT, 0, 0, comm, &ordinary);
  say("of an ordinary one", MPI_Pready(1, ordinary));
  say("arrival of an ordinary one", MPI_Parrived(ordinary, 1, &flag));
  MPI_Request_free(&ordinary);
  MPI_Pready(1, send);
  MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
  say("incomplete", flag);
  MPI_Pready(3, send);
  say("sent", MPI_Wait(&send, &status));
  say("received", MPI_Wait(&receive, &status));
  MPI_Request_free(&receive);
  /* More than the receiver expects. */
  MPI_Precv_init(in, 3, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &receive);
  MPI_Request_free(&send);
  MPI_Psend_init(out, 4, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &send);
  MPI_Start(&receive);
  MPI_Start(&send);
  MPI_Pready_range(0, 3, send);
  say("longer than its receive, sent", MPI_Wait(&send, &status));
  say("longer than its receive", MPI_Wait(&receive, &status));
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  /* Nobody. */
  MPI_Psend_init(out, 4, 2, MPI_INT, MPI_PROC_NULL, 1, comm, MPI_INFO_NULL, &send);
  MPI_Precv_init(in, 4, 2, MPI_INT, MPI_PROC_NULL, 1, comm, MPI_INFO_NULL, &receive);
  MPI_Start(&send);
  MPI_Start(&receive);
  say("to nobody", MPI_Pready_range(0, 3, send));
  flag = 0;
  say("from nobody", MPI_Parrived(receive, 3, &flag));
  int count = -1;
  MPI_Wait(&send, &status);
  MPI_Wait(&receive, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  say("nothing", !flag || count != 0 || status.MPI_SOURCE != MPI_PROC_NULL || status.MPI_TAG != MPI_ANY_TAG);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Errhandler_free(&errhandler);
}

SCENARIO(partitioned_threads) { with_threads(atoi(argv[1])); }
SCENARIO(partitioned_order) { order(); }
SCENARIO(partitioned_undescribed) { undescribed(); }
SCENARIO(partitioned_errors) { errors(); }

#endif
