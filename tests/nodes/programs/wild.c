/* Random messages between all ranks of a job over several nodes, received in every way, mostly from anybody. Each message
   tells its sender, number and length; per sender, communicator and tag they must come in order, and each once.

   Every rank draws from the same numbers who sends what to whom in a round, so it knows how many come to it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                           \
  do {                                                                        \
    if (!(what)) {                                                            \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what);       \
      MPI_Abort(MPI_COMM_WORLD, 1);                                           \
    }                                                                         \
  } while (0)

enum { most = 64, tags = 3, longest = 60000 };
typedef struct {
  int from, to, tag, number, length;
  unsigned synchronous;
} Message;

static int rank, size;
static int32_t *out[most], *in[most];
static unsigned state;
/* The same on all ranks; how() is each rank's own. */
static unsigned draw(unsigned below) { return (state = state * 1664525u + 1013904223u) / 256 % below; }
static unsigned own_state;
static unsigned how(unsigned below) { return (own_state = own_state * 1664525u + 1013904223u) / 256 % below; }

static void fill(int32_t *data, const Message *m) {
  for (int i = 0; i < m->length; ++i) data[i] = m->from * 1000000 + m->number * 1000 + i;
}
/* Which of those for us has come; out of order per sender and tag is an error. */
static void accept_one(const Message *all, int count, int *seen, const int32_t *data, const MPI_Status *status, int length) {
  for (int k = 0; k < count; ++k) {
    const Message *m = &all[k];
    if (m->to != rank || seen[k] || m->from != status->MPI_SOURCE || m->tag != status->MPI_TAG) continue;
    seen[k] = 1;
    CHECK(length == m->length);
    for (int i = 0; i < length; ++i) CHECK(data[i] == m->from * 1000000 + m->number * 1000 + i);
    return;
  }
  CHECK(!"a message that nobody has sent");
}

int main(int argc, char **argv) {
  const int rounds = atoi(argv[1]);
  const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  own_state = seed + (unsigned)rank * 31u;
  for (int k = 0; k < most; ++k) out[k] = malloc(longest * 4), in[k] = malloc(longest * 4);
  for (int round = 0; round < rounds; ++round) {
    state = seed * 7919u + (unsigned)round * 104729u + 1;
    const MPI_Comm at = draw(2) ? comm : MPI_COMM_WORLD;
    const int count = 1 + (int)draw(most - 1), way = (int)draw(8), early = (int)draw(2), by_tag = (int)draw(2);
    Message all[most];
    int seen[most] = {0}, mine = 0, of_tag[tags] = {0};
    for (int k = 0; k < count; ++k) {
      const unsigned kind = draw(10);
      const int length = kind < 6 ? (int)draw(20) : kind < 9 ? (int)draw(3000) : (int)draw(longest);
      all[k] = (Message){(int)draw((unsigned)size), (int)draw((unsigned)size), (int)draw(tags), k, length, draw(4) == 0};
      mine += all[k].to == rank;
      if (all[k].to == rank) ++of_tag[all[k].tag];
    }
    MPI_Request sends[most], receives[most];
    int sent = 0, posted = 0, got = 0;
    MPI_Status status;
    /* Posted in the order of tags, from anybody; some before anything is sent. */
    const int wild_tag = !by_tag;
    if (way < 4) {
      if (way == 3) { /* persistent */
        for (int k = 0; k < mine; ++k) {
          int tag = 0, before = 0;
          while (before + of_tag[tag] <= k) before += of_tag[tag++];
          MPI_Recv_init(in[k], longest, MPI_INT32_T, MPI_ANY_SOURCE, wild_tag ? MPI_ANY_TAG : tag, at, &receives[posted++]);
        }
        MPI_Startall(posted, receives);
      } else {
        for (int k = 0; k < mine; ++k) {
          int tag = 0, before = 0;
          while (before + of_tag[tag] <= k) before += of_tag[tag++];
          MPI_Irecv(in[k], longest, MPI_INT32_T, MPI_ANY_SOURCE, wild_tag ? MPI_ANY_TAG : tag, at, &receives[posted++]);
        }
      }
      if (early) MPI_Barrier(at);
    }
    for (int k = 0; k < count; ++k) {
      if (all[k].from != rank) continue;
      fill(out[k], &all[k]);
      if (all[k].synchronous) MPI_Issend(out[k], all[k].length, MPI_INT32_T, all[k].to, all[k].tag, at, &sends[sent++]);
      else MPI_Isend(out[k], all[k].length, MPI_INT32_T, all[k].to, all[k].tag, at, &sends[sent++]);
    }
    if (way < 4) {
      /* In order of posting: what a wildcard has met before comes first. */
      MPI_Status *all_status = calloc(most, sizeof *all_status);
      if (way == 0) {
        MPI_Waitall(posted, receives, all_status);
      } else {
        for (int k = 0; k < posted; ++k) {
          int flag = 0;
          if (way == 1)
            while (!flag) MPI_Test(&receives[k], &flag, &all_status[k]);
          else MPI_Wait(&receives[k], &all_status[k]);
        }
      }
      for (int k = 0; k < posted; ++k) {
        int length;
        MPI_Get_count(&all_status[k], MPI_INT32_T, &length);
        accept_one(all, count, seen, in[k], &all_status[k], length);
      }
      got = posted;
      if (way == 3)
        for (int k = 0; k < posted; ++k) MPI_Request_free(&receives[k]);
      free(all_status);
    }
    for (; got < mine; ++got) {
      int length, flag = 0;
      MPI_Message message;
      const unsigned kind = how(5);
      if (kind == 0) {
        MPI_Recv(in[0], longest, MPI_INT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, at, &status);
      } else if (kind == 1) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, at, &status);
        MPI_Recv(in[0], longest, MPI_INT32_T, status.MPI_SOURCE, status.MPI_TAG, at, &status);
      } else if (kind == 2) {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, at, &message, &status);
        MPI_Mrecv(in[0], longest, MPI_INT32_T, &message, &status);
      } else if (kind == 3) {
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, at, &flag, &message, &status);
        MPI_Mrecv(in[0], longest, MPI_INT32_T, &message, &status);
      } else {
        MPI_Request request;
        MPI_Irecv(in[0], longest, MPI_INT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, at, &request);
        MPI_Wait(&request, &status);
      }
      MPI_Get_count(&status, MPI_INT32_T, &length);
      accept_one(all, count, seen, in[0], &status, length);
    }
    MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(at);
    /* A receive that nobody meets is taken back. */
    if (draw(3) == 0) {
      MPI_Request request;
      int cancelled;
      MPI_Irecv(in[0], 1, MPI_INT32_T, MPI_ANY_SOURCE, tags + 1, at, &request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &cancelled);
      CHECK(cancelled);
    }
    if (draw(4) == 0) {
      int a = rank, b = -1;
      const int to = (rank + 1) % size, from = (rank + size - 1) % size;
      MPI_Sendrecv(&a, 1, MPI_INT, to, tags, &b, 1, MPI_INT, draw(2) ? from : MPI_ANY_SOURCE, tags, at, &status);
      CHECK(b == from && status.MPI_SOURCE == from);
      MPI_Sendrecv_replace(&a, 1, MPI_INT, to, tags, from, tags, at, &status);
      CHECK(a == from && status.MPI_SOURCE == from);
    }
    MPI_Barrier(at);
  }
  MPI_Comm_free(&comm);
  puts("good");
  MPI_Finalize();
}
