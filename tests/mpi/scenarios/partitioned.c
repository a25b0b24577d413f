/* Partitioned messages against a model.

     model        random messages between all pairs, of equal and unequal partitions and types, several of one tag, with
                  ordinary messages of the same tags, in every way of marking and completing
     restarts     one message again and again, with delays on either side
     threads      threads mark partitions and ask what has arrived while the first one waits
     order        starts in another order than inits, freed ones that were never started, a receiver that blocks
     undescribed  types of so many blocks that no description of them is kept
     errors       wrong calls, a line each */
#include "scenarios.h"

#if HAS_PARTITIONED

static unsigned private_state, shared_state; /* of random numbers: one's own, and those that all ranks draw alike */

static unsigned draw(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}
static int any(int n) { return (int)(draw(&private_state) % (unsigned)n); }
static int common(int n) { return (int)(draw(&shared_state) % (unsigned)n); }

static int value(int message, int start, long i) { return (int)(i * 7 + start * 100003 + message * 1009 + 1); }

/* Elements in memory: of ints, of ints with a gap behind each, of pairs with a gap between. */
enum { dense, gaps, pairs, kinds };
static MPI_Datatype types[kinds];
static long place(int kind, long i) {
  if (kind == gaps) return 2 * i;
  if (kind == pairs) return i / 2 * 5 + i % 2 * 3;
  return i;
}
static int ints_of(int kind) { return kind == pairs ? 2 : 1; }
static void make_types(void) {
  MPI_Datatype vector, indexed;
  MPI_Type_contiguous(1, MPI_INT, &types[dense]);
  MPI_Type_vector(1, 1, 2, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, 8, &types[gaps]);
  const int lengths[] = {1, 1}, at[] = {0, 3};
  MPI_Type_indexed(2, lengths, at, MPI_INT, &indexed);
  MPI_Type_create_resized(indexed, 0, 20, &types[pairs]);
  for (int k = 0; k < kinds; ++k) MPI_Type_commit(&types[k]);
  MPI_Type_free(&vector);
  MPI_Type_free(&indexed);
}

struct message {
  int number, from, to, tag, sent_in, received_in, sent_kind, received_kind;
  long ints;
  MPI_Request send, receive;
  int *out, *in;
};
static long span(long ints) { return 3 * ints + 8; }

static void init(struct message* m) {
  const int basic = common(2); /* the predefined type where there are no gaps */
  if (m->from == rank) {
    m->out = malloc(sizeof(int) * (size_t)span(m->ints));
    const MPI_Datatype type = m->sent_kind == dense && basic ? MPI_INT : types[m->sent_kind];
    MPI_Psend_init(m->out, m->sent_in, m->ints / m->sent_in / ints_of(m->sent_kind), type, m->to, m->tag,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &m->send);
  }
  if (m->to == rank) {
    m->in = malloc(sizeof(int) * (size_t)span(m->ints));
    const MPI_Datatype type = m->received_kind == dense && basic ? MPI_INT : types[m->received_kind];
    MPI_Precv_init(m->in, m->received_in, m->ints / m->received_in / ints_of(m->received_kind), type, m->from, m->tag,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &m->receive);
  }
}

static void fill(struct message* m, int start) {
  for (long i = 0; i < m->ints; ++i) m->out[place(m->sent_kind, i)] = value(m->number, start, i);
}
static void clear(struct message* m) {
  for (long i = 0; i < span(m->ints); ++i) m->in[i] = -1;
}
static void check(const struct message* m, int start, int partition) {
  const long ints = m->ints / m->received_in;
  for (long i = partition * ints; i < (partition + 1) * ints; ++i)
    REQUIRE(m->in[place(m->received_kind, i)] == value(m->number, start, i), "message %d, element %ld", m->number, i);
}
static void check_all(const struct message* m, int start) {
  long i = 0;
  for (int p = 0; p < m->received_in; ++p) check(m, start, p);
  for (long at = 0; at < span(m->ints); ++at) {
    if (i < m->ints && at == place(m->received_kind, i)) ++i;
    else REQUIRE(m->in[at] == -1, "message %d wrote beside its data, at %ld", m->number, at);
  }
}
static void end(struct message* m) {
  if (m->from == rank) MPI_Request_free(&m->send), free(m->out);
  if (m->to == rank) MPI_Request_free(&m->receive), free(m->in);
}

static void shuffle(int* order, int n) {
  for (int i = 0; i < n; ++i) order[i] = i;
  for (int i = n - 1; i > 0; --i) {
    const int j = any(i + 1), other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
}

/* All partitions, in one of the ways. */
static void mark(struct message* m) {
  int* order = malloc(sizeof(int) * (size_t)m->sent_in);
  shuffle(order, m->sent_in);
  switch (any(4)) {
    case 0: MPI_Pready_range(0, m->sent_in - 1, m->send); break;
    case 1: MPI_Pready_list(m->sent_in, order, m->send); break;
    default:
      for (int i = 0; i < m->sent_in; ++i) {
        MPI_Pready(order[i], m->send);
        if (any(16) == 0) usleep((useconds_t)any(100));
      }
  }
  free(order);
}

static void complete(MPI_Request* requests, int n, MPI_Status* statuses) {
  int done = 0, flag = 0, index;
  switch (any(5)) {
    case 0: MPI_Waitall(n, requests, statuses); break;
    case 1:
      while (!flag) MPI_Testall(n, requests, &flag, statuses);
      break;
    case 2:
      for (int i = n; i-- > 0;) MPI_Wait(&requests[i], &statuses[i]);
      break;
    case 3:
      for (MPI_Status status; done < n; ++done) {
        MPI_Waitany(n, requests, &index, &status);
        statuses[index] = status;
      }
      break;
    default:
      for (int i = 0; i < n; ++i) {
        do {
          MPI_Request_get_status(requests[i], &flag, &statuses[i]);
        } while (!flag);
        MPI_Wait(&requests[i], &statuses[i]);
      }
  }
}

enum { most = 12 };
static void one_case(void) {
  static const int shapes[][2] = {{1, 1}, {4, 4}, {1, 6}, {6, 1}, {4, 6}, {6, 4}, {3, 5}, {16, 2}, {24, 36}, {7, 7}};
  static const long lengths[] = {0, 1, 3, 40, 700, 5000};
  struct message all[most];
  const int n = 1 + common(most), starts = 1 + common(4);
  memset(all, 0, sizeof all);
  for (int k = 0; k < n; ++k) {
    struct message* m = &all[k];
    const int* shape = shapes[common(sizeof shapes / sizeof *shapes)];
    m->number = k;
    m->from = common(size);
    m->to = common(size);
    m->tag = common(2);
    m->sent_in = shape[0];
    m->received_in = shape[1];
    m->sent_kind = common(kinds);
    m->received_kind = common(kinds);
    m->ints = 2 * shape[0] * shape[1] * lengths[common(sizeof lengths / sizeof *lengths)];
    if (m->ints > 400000) m->ints = 2 * shape[0] * shape[1] * 100;
    init(m);
  }
  for (int start = 0; start < starts; ++start) {
    MPI_Request requests[4 * most];
    MPI_Status statuses[4 * most];
    struct message* of[4 * most];
    int order[most], used = 0, ordinary[2 * most];
    shuffle(order, n);
    for (int k = 0; k < n; ++k) {
      struct message* m = &all[order[k]];
      if (m->to == rank) {
        clear(m);
        MPI_Start(&m->receive);
      }
      if (m->from == rank) {
        fill(m, start);
        MPI_Start(&m->send);
      }
      if (any(4) == 0) usleep((useconds_t)any(300));
    }
    /* Ordinary ones, of the same partners and tags. */
    for (int k = 0; k < n; ++k) {
      struct message* m = &all[k];
      ordinary[2 * k] = value(k, start, 77);
      if (m->to == rank) {
        MPI_Irecv(&ordinary[2 * k + 1], 1, MPI_INT, m->from, m->tag, MPI_COMM_WORLD, &requests[used]);
        of[used++] = NULL;
      }
      if (m->from == rank) {
        MPI_Isend(&ordinary[2 * k], 1, MPI_INT, m->to, m->tag, MPI_COMM_WORLD, &requests[used]);
        of[used++] = NULL;
      }
    }
    shuffle(order, n);
    for (int k = 0; k < n; ++k)
      if (all[order[k]].from == rank) mark(&all[order[k]]);
    for (int k = 0; k < n; ++k) { /* some are watched */
      struct message* m = &all[k];
      if (m->to != rank || any(2)) continue;
      for (int p = m->received_in; p-- > 0;) {
        int flag = 0;
        while (!flag) MPI_Parrived(m->receive, p, &flag);
        check(m, start, p);
      }
    }
    for (int k = 0; k < n; ++k) {
      if (all[k].from == rank) of[used] = NULL, requests[used++] = all[k].send;
      if (all[k].to == rank) of[used] = &all[k], requests[used++] = all[k].receive;
    }
    complete(requests, used, statuses);
    for (int i = 0; i < used; ++i) {
      int count = 0;
      if (!of[i]) continue;
      MPI_Get_count(&statuses[i], MPI_INT, &count);
      REQUIRE(count == of[i]->ints && statuses[i].MPI_SOURCE == of[i]->from && statuses[i].MPI_TAG == of[i]->tag,
              "%d ints", count);
      check_all(of[i], start);
      int flag = 0;
      MPI_Parrived(of[i]->receive, 0, &flag);
      REQUIRE(flag, "message %d is complete and has not arrived", of[i]->number);
    }
    for (int k = 0; k < n; ++k)
      REQUIRE(all[k].to != rank || ordinary[2 * k + 1] == value(k, start, 77), "ordinary message %d of start %d", k,
              start);
  }
  for (int k = 0; k < n; ++k) end(&all[k]);
}

static void one_message(struct message* m, int sent_in, int received_in, long ints) {
  memset(m, 0, sizeof *m);
  m->from = 0;
  m->to = size - 1;
  m->tag = 5;
  m->sent_in = sent_in;
  m->received_in = received_in;
  m->ints = ints;
  init(m);
}

static void restarts(int times) {
  static const long lengths[] = {24, 2400, 240000};
  for (int which = 0; which < 3; ++which) {
    struct message m;
    one_message(&m, 6, 4, lengths[which]);
    for (int start = 0; start < (which == 2 ? times / 10 : times); ++start) {
      if (any(50) == 0) usleep((useconds_t)any(2000));
      if (rank == m.to) {
        clear(&m);
        MPI_Start(&m.receive);
      }
      if (rank == m.from) {
        fill(&m, start);
        MPI_Start(&m.send);
        mark(&m);
        MPI_Wait(&m.send, MPI_STATUS_IGNORE);
        memset(m.out, 0x55, sizeof(int) * (size_t)m.ints); /* it may be reused */
      }
      if (rank == m.to) {
        if (any(50) == 0) usleep((useconds_t)any(2000));
        MPI_Wait(&m.receive, MPI_STATUS_IGNORE);
        check_all(&m, start);
      }
    }
    end(&m);
  }
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
    for (long i = p * ints; i < (p + 1) * ints; ++i)
      w->m->out[place(w->m->sent_kind, i)] = value(w->m->number, w->start, i);
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
    struct message m;
    const int* shape = shapes[which % 3];
    one_message(&m, shape[0], shape[1], shape[0] * shape[1] * (which < 3 ? 2 : which < 6 ? 100 : 2000));
    for (int start = 0; start < times; ++start) {
      pthread_t started[2 * threads];
      struct work work[threads];
      int n = 0;
      if (rank == m.to) {
        clear(&m);
        MPI_Start(&m.receive);
      }
      if (rank == m.from) MPI_Start(&m.send);
      for (int t = 0; t < threads; ++t) {
        work[t] = (struct work){&m, t, start};
        if (rank == m.from) pthread_create(&started[n++], NULL, mark_some, &work[t]);
        if (rank == m.to) pthread_create(&started[n++], NULL, watch_some, &work[t]);
      }
      if (rank == m.from && start % 2) MPI_Wait(&m.send, MPI_STATUS_IGNORE); /* before all are marked */
      for (int t = 0; t < n; ++t) pthread_join(started[t], NULL);
      if (rank == m.from) MPI_Wait(&m.send, MPI_STATUS_IGNORE);
      if (rank == m.to) {
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

/* Arguments of all: a seed, and how many. */
#define ON_TYPES(name, ...)                                                 \
  SCENARIO(partitioned_##name) {                                            \
    const int times __attribute__((unused)) = argc > 2 ? atoi(argv[2]) : 1; \
    shared_state = (unsigned)(argc > 1 ? atoi(argv[1]) : 1);                \
    private_state = shared_state * 31 + (unsigned)rank;                     \
    make_types();                                                           \
    __VA_ARGS__;                                                            \
    for (int k = 0; k < kinds; ++k) MPI_Type_free(&types[k]);               \
  }
ON_TYPES(model, for (int i = 0; i < times; ++i) one_case())
ON_TYPES(restarts, restarts(times))
ON_TYPES(threads, with_threads(times))
ON_TYPES(order, order())
ON_TYPES(undescribed, undescribed())
SCENARIO(partitioned_errors) { errors(); }

#endif
