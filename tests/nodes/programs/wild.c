/* Random messages between all ranks of a job over several nodes, received in every way, mostly from anybody. Each message
   tells its sender, number and length; per sender, communicator and tag they must come in order, and each once.

     wild ROUNDS SEED   so many rounds
     wild FILE          a round per line: seed, messages, way, early, by_tag, late, world

   Every rank draws from the same numbers who sends what to whom in a round, so it knows how many come to it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                    \
  do {                                                                                 \
    if (!(what)) {                                                                     \
      fprintf(stderr, "rank %d, round %d, line %d: %s\n", rank, round_, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                    \
    }                                                                                  \
  } while (0)

enum { most = 64, tags = 3, longest = 60000, in_order = 4 };
typedef struct {
  int from, to, tag, number, length;
  unsigned synchronous;
} Message;
/* way: 0 to 3, receives that are posted: completed by Waitall, Test, Wait; persistent. 4 and more: one after the other, in
   any way. early: they are posted before anybody sends. by_tag: each for one tag. late: sends block, and a collective call
   comes before anything is waited for. */
typedef struct {
  unsigned seed;
  int messages, way, early, by_tag, late, world;
} Round;

static int rank, size, round_;
static int32_t *out[most], *in[most];
static unsigned state;
/* The same on all ranks; how() is each rank's own. */
static unsigned draw(unsigned below) { return (state = state * 1664525u + 1013904223u) / 256 % below; }
static unsigned own_state;
static unsigned how(unsigned below) { return (own_state = own_state * 1664525u + 1013904223u) / 256 % below; }

static void fill(int32_t *data, int from, int number, int length) {
  for (int i = 0; i < length; ++i) data[i] = from * 1000000 + number * 1000 + i;
}
static void check(const int32_t *data, int from, int number, int length) {
  for (int i = 0; i < length; ++i) CHECK(data[i] == from * 1000000 + number * 1000 + i);
}
/* Which of those for us has come; out of order per sender and tag is an error. */
static void accept_one(const Message *all, int count, int *seen, const int32_t *data, const MPI_Status *status) {
  int length;
  MPI_Get_count(status, MPI_INT32_T, &length);
  for (int k = 0; k < count; ++k) {
    const Message *m = &all[k];
    if (m->to != rank || seen[k] || m->from != status->MPI_SOURCE || m->tag != status->MPI_TAG) continue;
    seen[k] = 1;
    CHECK(length == m->length);
    check(data, m->from, m->number, length);
    return;
  }
  CHECK(!"a message that nobody has sent");
}
static int any_length(void) {
  const unsigned kind = draw(10);
  return kind < 6 ? (int)draw(20) : kind < 9 ? (int)draw(3000) : (int)draw(longest);
}

static void receive_one(int kind, int32_t *data, int source, int tag, MPI_Comm at, MPI_Status *status) {
  int flag = 0;
  MPI_Message message;
  MPI_Request request;
  switch (kind) {
    case 0: MPI_Recv(data, longest, MPI_INT32_T, source, tag, at, status); break;
    case 1:
      MPI_Probe(source, tag, at, status);
      MPI_Recv(data, longest, MPI_INT32_T, status->MPI_SOURCE, status->MPI_TAG, at, status);
      break;
    case 2:
      MPI_Mprobe(source, tag, at, &message, status);
      MPI_Mrecv(data, longest, MPI_INT32_T, &message, status);
      break;
    case 3:
      while (!flag) MPI_Improbe(source, tag, at, &flag, &message, status);
      MPI_Imrecv(data, longest, MPI_INT32_T, &message, &request);
      MPI_Wait(&request, status);
      break;
    case 4:
      while (!flag) MPI_Iprobe(source, tag, at, &flag, status);
      MPI_Recv(data, longest, MPI_INT32_T, status->MPI_SOURCE, status->MPI_TAG, at, status);
      break;
    default:
      MPI_Irecv(data, longest, MPI_INT32_T, source, tag, at, &request);
      MPI_Wait(&request, status);
  }
}

/* A collective call that has to end while receives from anybody wait. */
static void meet(MPI_Comm at) {
  MPI_Comm copy;
  int one = 1, sum;
  switch (draw(3)) {
    case 0: MPI_Barrier(at); break;
    case 1:
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, at);
      CHECK(sum == size);
      break;
    default:
      MPI_Comm_dup(at, &copy);
      MPI_Comm_free(&copy);
  }
}

/* The messages of one sender meet receives from it and from anybody in the order in which these were posted. */
static void check_order(MPI_Comm at) {
  const int tag = tags + 2, to = (rank + 1) % size, from = (rank + size - 1) % size, early = (int)draw(2);
  MPI_Request sends[in_order], receives[in_order];
  int length[in_order], waits[in_order];
  MPI_Status status;
  for (int k = 0; k < in_order; ++k) length[k] = any_length();
  for (int sending = !early, pass = 0; pass < 2; ++pass, sending = !sending)
    for (int k = 0; k < in_order; ++k) {
      if (sending) {
        fill(out[k], rank, k, length[k]);
        MPI_Isend(out[k], length[k], MPI_INT32_T, to, tag, at, &sends[k]);
        continue;
      }
      const int source = how(2) ? from : MPI_ANY_SOURCE;
      waits[k] = early || how(2);
      if (waits[k]) {
        MPI_Irecv(in[k], longest, MPI_INT32_T, source, how(2) ? tag : MPI_ANY_TAG, at, &receives[k]);
      } else {
        receive_one((int)how(6), in[k], source, tag, at, &status);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag);
      }
    }
  for (int k = 0; k < in_order; ++k)
    if (waits[k]) {
      MPI_Wait(&receives[k], &status);
      CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag);
    }
  for (int k = 0; k < in_order; ++k) check(in[k], from, k, length[k]);
  MPI_Waitall(in_order, sends, MPI_STATUSES_IGNORE);
}

static void play(const Round *r, MPI_Comm comm) {
  state = r->seed * 7919u + 1;
  own_state = r->seed + (unsigned)rank * 31u;
  const MPI_Comm at = r->world ? MPI_COMM_WORLD : comm;
  const int count = r->messages;
  Message all[most];
  MPI_Request sends[most], receives[most];
  MPI_Status statuses[most];
  int seen[most] = {0}, mine = 0, of_tag[tags] = {0}, sent = 0, posted = 0;
  for (int k = 0; k < count; ++k) {
    const int length = any_length();
    all[k] = (Message){(int)draw((unsigned)size), (int)draw((unsigned)size), (int)draw(tags), k, length, draw(4) == 0};
    mine += all[k].to == rank;
    if (all[k].to == rank) ++of_tag[all[k].tag];
  }
  if (r->way < 4) {
    for (int tag = 0; tag < tags; ++tag)
      for (int k = 0; k < of_tag[tag]; ++k)
        (r->way == 3 ? MPI_Recv_init : MPI_Irecv)(in[posted], longest, MPI_INT32_T, MPI_ANY_SOURCE,
                                                  r->by_tag ? tag : MPI_ANY_TAG, at, &receives[posted]), ++posted;
    if (r->way == 3) MPI_Startall(posted, receives);
    if (r->early || r->late) MPI_Barrier(at);
  }
  const int blocking = r->way < 4 && r->late;
  for (int k = 0; k < count; ++k) {
    const Message *m = &all[k];
    if (m->from != rank) continue;
    fill(out[k], m->from, m->number, m->length);
    if (blocking)
      (m->synchronous ? MPI_Ssend : MPI_Send)(out[k], m->length, MPI_INT32_T, m->to, m->tag, at);
    else
      (m->synchronous ? MPI_Issend : MPI_Isend)(out[k], m->length, MPI_INT32_T, m->to, m->tag, at, &sends[sent++]);
  }
  if (blocking) meet(at);
  if (r->way == 0) {
    MPI_Waitall(posted, receives, statuses);
  } else {
    for (int k = 0; k < posted; ++k) {
      int flag = 0;
      if (r->way == 1)
        while (!flag) MPI_Test(&receives[k], &flag, &statuses[k]);
      else
        MPI_Wait(&receives[k], &statuses[k]);
    }
  }
  /* In order of posting: what a wildcard has met before comes first. */
  for (int k = 0; k < posted; ++k) accept_one(all, count, seen, in[k], &statuses[k]);
  if (r->way == 3)
    for (int k = 0; k < posted; ++k) MPI_Request_free(&receives[k]);
  for (int got = posted; got < mine; ++got) {
    receive_one((int)how(6), in[0], MPI_ANY_SOURCE, MPI_ANY_TAG, at, &statuses[0]);
    accept_one(all, count, seen, in[0], &statuses[0]);
  }
  MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
  MPI_Barrier(at);
  /* A receive that nobody meets is taken back. */
  if (draw(3) == 0) {
    int cancelled;
    MPI_Irecv(in[0], 1, MPI_INT32_T, MPI_ANY_SOURCE, tags + 1, at, &receives[0]);
    if (draw(2)) meet(at);
    MPI_Cancel(&receives[0]);
    MPI_Wait(&receives[0], &statuses[0]);
    MPI_Test_cancelled(&statuses[0], &cancelled);
    CHECK(cancelled);
  }
  if (draw(3) == 0) {
    int a = rank, b = -1;
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(&a, 1, MPI_INT, to, tags, &b, 1, MPI_INT, draw(2) ? from : MPI_ANY_SOURCE, tags, at, &statuses[0]);
    CHECK(b == from && statuses[0].MPI_SOURCE == from);
    MPI_Sendrecv_replace(&a, 1, MPI_INT, to, tags, from, tags, at, &statuses[0]);
    CHECK(a == from && statuses[0].MPI_SOURCE == from);
  }
  if (draw(2)) check_order(at);
  MPI_Barrier(at);
}

int main(int argc, char **argv) {
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int k = 0; k < most; ++k) out[k] = malloc(longest * 4), in[k] = malloc(longest * 4);
  puts("begun");
  fflush(stdout);
  if (argc > 2) {
    for (; round_ < atoi(argv[1]); ++round_) {
      state = (unsigned)(atoi(argv[2]) * 7919 + round_ * 104729 + 1);
      const Round r = {draw(1u << 20), 1 + (int)draw(most - 1), (int)draw(8), (int)draw(2), (int)draw(2), (int)draw(2), (int)draw(2)};
      play(&r, comm);
    }
  } else {
    FILE *file = fopen(argv[1], "r");
    Round r;
    CHECK(file);
    for (; fscanf(file, "%u %d %d %d %d %d %d", &r.seed, &r.messages, &r.way, &r.early, &r.by_tag, &r.late, &r.world) == 7; ++round_)
      play(&r, comm);
    fclose(file);
  }
  MPI_Comm_free(&comm);
  printf("%d rounds\n", round_);
  MPI_Finalize();
}
