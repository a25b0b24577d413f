/* Operations of three threads, several outstanding on communicators of their own, beside other collectives, messages
   and requests of the host, completed in all ways. */
#include "scenarios.h"

enum { most = 12 };

typedef struct {
  MPI_Request request;
  int64_t *send, *recv;
  int count, number, in_place;
} Sum;

static unsigned next(unsigned* state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static int64_t value(int rank, int number, int i) { return (int64_t)(rank + 1) * (number * 31 + i); }

static void fill(int64_t* data, int count, int rank, int number) {
  for (int i = 0; i < count; ++i) data[i] = value(rank, number, i);
}
static int right(const int64_t* data, int count, int size, int number) {
  for (int i = 0; i < count; ++i)
    if (data[i] != (int64_t)size * (size + 1) / 2 * (number * 31 + i)) return 0;
  return 1;
}

static void issue(Sum* sum, MPI_Comm comm, int number, unsigned* both) {
  static const int lengths[] = {1, 3, 64, 512, 513, 5000, 40000};
  int rank;
  MPI_Comm_rank(comm, &rank);
  sum->number = number;
  sum->count = next(both) % 4 ? lengths[next(both) % 7] : 0;
  sum->in_place = next(both) % 3 == 0;
  sum->send = malloc((size_t)sum->count * 8 + 8);
  sum->recv = malloc((size_t)sum->count * 8 + 8);
  fill(sum->in_place ? sum->recv : sum->send, sum->count, rank, number);
  if (sum->count == 0) MPI_Ibarrier(comm, &sum->request);
  else
    MPI_Iallreduce(sum->in_place ? MPI_IN_PLACE : sum->send, sum->recv, sum->count, MPI_INT64_T, MPI_SUM, comm,
                   &sum->request);
}

static void done(Sum* sum, MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  REQUIRE(sum->request == MPI_REQUEST_NULL);
  REQUIRE(right(sum->recv, sum->count, size, sum->number));
  free(sum->send);
  free(sum->recv);
  memset(sum, 0, sizeof *sum);
}

static void mix(MPI_Comm comm, unsigned both, unsigned own, int rounds) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int round = 0; round < rounds; ++round) {
    Sum sums[most];
    MPI_Request all[most + 2];
    int64_t ring = -1, mine = rank * 1000 + round, one = rank + 1, total = 0;
    const int n = 1 + (int)(next(&both) % most);
    for (int k = 0; k < n; ++k) {
      issue(&sums[k], comm, round * most + k, &both);
      if (next(&both) % 8 == 0) { /* a call that returns when it is done, in between */
        MPI_Allreduce(&one, &total, 1, MPI_INT64_T, MPI_SUM, comm);
        REQUIRE(total == (int64_t)size * (size + 1) / 2);
      }
    }
    /* Beside them a message around the ring, and a request of the host. */
    MPI_Irecv(&ring, 1, MPI_INT64_T, (rank + size - 1) % size, 7, comm, &all[n]);
    MPI_Send(&mine, 1, MPI_INT64_T, (rank + 1) % size, 7, comm);
    int gathered[64];
    MPI_Iallgather(&round, 1, MPI_INT, gathered, 1, MPI_INT, comm, &all[n + 1]);
    for (int k = 0; k < n; ++k) all[k] = sums[k].request;
    MPI_Status statuses[most + 2];
    int left = n + 2, flag = 0, index, out, indices[most + 2];
    switch (next(&own) % 6) {
      case 0: MPI_Waitall(n + 2, all, statuses); break;
      case 1:
        while (!flag) MPI_Testall(n + 2, all, &flag, statuses);
        break;
      case 2:
        while (left--) MPI_Waitany(n + 2, all, &index, statuses);
        break;
      case 3:
        while (left > 0) {
          MPI_Waitsome(n + 2, all, &out, indices, statuses);
          left -= out;
        }
        break;
      case 4:
        for (int k = n + 2; k-- > 0;) {
          for (flag = 0; !flag;) MPI_Test(&all[k], &flag, MPI_STATUS_IGNORE);
        }
        break;
      default:
        for (int k = 0; k < n + 2; ++k) {
          MPI_Status status;
          for (flag = 0; !flag;) MPI_Request_get_status(all[k], &flag, &status);
          REQUIRE(all[k] != MPI_REQUEST_NULL);
          MPI_Wait(&all[k], &status);
        }
    }
    REQUIRE(ring == (rank + size - 1) % size * 1000 + round);
    for (int k = 0; k < n; ++k) {
      sums[k].request = all[k];
      done(&sums[k], comm);
    }
  }
}

static MPI_Comm of_thread[3];
static void* thread(void* which) {
  const int t = (int)(intptr_t)which;
  mix(of_thread[t], 77u + (unsigned)t, 1000u * (unsigned)rank + (unsigned)t, 60);
  return NULL;
}

/* By three threads, each with a communicator of its own. */
SCENARIO(overlapping_threads) {
  int provided;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  pthread_t ids[3];
  for (int t = 0; t < 3; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[t]);
  for (int t = 0; t < 3; ++t) pthread_create(&ids[t], NULL, thread, (void*)(intptr_t)t);
  for (int t = 0; t < 3; ++t) pthread_join(ids[t], NULL);
  for (int t = 0; t < 3; ++t) MPI_Comm_free(&of_thread[t]);
}
