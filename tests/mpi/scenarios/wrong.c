/* What one rank alone gets wrong must not leave the others waiting, and all ranks must agree on what was no call. */
#include "scenarios.h"

static int a[256], b[256];

static MPI_Comm of_returned_errors(int is_first) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; !is_first && i < 20; ++i) MPI_Barrier(comm); /* more than the host serves of a deferred one's calls */
  return comm;
}

/* The same buffer twice, on ranks that get nothing as well: an error on all, then they are in step. */
SCENARIO(wrong_aliased) {
  MPI_Comm comm = of_returned_errors(0);
  int counts[64] = {0}, one = 1, sum = 0;
  counts[size - 1] = 4;
  CHECK(MPI_Exscan(a, a, 4, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
  CHECK(MPI_Reduce_scatter(a, a, counts, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size, "out of step");
  MPI_Comm_free(&comm);
}

/* The last rank alone gives blocks of `mine` ints where all take `n`, of every second int if `apart`: as much as fits
   arrives, it has an error if it gives more, and all stay in step. As a root it gives itself, or takes of itself, that
   many. */
static void one_of_another_length(MPI_Comm comm, int n, int mine, int apart, int waits) {
  const int odd = size - 1, fits = mine < n ? mine : n, stride = 1 + apart;
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(stride * sizeof(int)), &type);
  MPI_Type_commit(&type);
  const size_t room = (size_t)size * (size_t)(n > mine ? n : mine) * (size_t)stride;
  int *in = malloc(room * sizeof *in), *out = malloc(room * sizeof *out);
  for (int op = 0; op < 4; ++op) {
    for (size_t i = 0; i < room; ++i) in[i] = rank + 1, out[i] = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    const int given = rank == odd ? mine : n;
    int code = MPI_SUCCESS;
    switch (op * 2 + waits) {
      case 0: code = MPI_Iallgather(in, given, type, out, n, type, comm, &request); break;
      case 1: code = MPI_Allgather(in, given, type, out, n, type, comm); break;
      case 2: code = MPI_Ialltoall(in, given, type, out, n, type, comm, &request); break;
      case 3: code = MPI_Alltoall(in, given, type, out, n, type, comm); break;
      case 4: code = MPI_Igather(in, given, type, out, n, type, odd, comm, &request); break;
      case 5: code = MPI_Gather(in, given, type, out, n, type, odd, comm); break;
      case 6: code = MPI_Iscatter(in, n, type, out, given, type, odd, comm, &request); break;
      default: code = MPI_Scatter(in, n, type, out, given, type, odd, comm); break;
    }
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int cut = op == 3 ? mine < n : mine > n;
    CHECK(class_of(code) == (rank == odd && cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "operation %d: class %d", op,
          class_of(code));
    const int blocks = op == 3 ? 1 : op == 2 && rank != odd ? 0 : size;
    for (int from = 0; from < blocks; ++from) {
      const int sender = op == 3 ? odd : from, short_one = op == 3 ? rank == odd : from == odd;
      for (int i = 0; i < (short_one ? fits : n); ++i) {
        const int* const at = out + ((size_t)from * (size_t)n + (size_t)i) * (size_t)stride;
        REQUIRE(at[0] == sender + 1, "operation %d, block %d, element %d: %d", op, from, i, at[0]);
        REQUIRE(!apart || at[1] == -1, "operation %d: a gap is written to", op);
      }
    }
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    REQUIRE(sum == size, "operation %d: out of step", op);
  }
  free(in);
  free(out);
  MPI_Type_free(&type);
}

SCENARIO(wrong_unequal) {
  MPI_Comm comm = of_returned_errors(0);
  static const int lengths[] = {4, 300, 50000};
  for (int k = 0; k < 3; ++k)
    for (int form = 0; form < 4; ++form) {
      const int n = lengths[k], apart = form & 1, waits = form >> 1;
      one_of_another_length(comm, n, n / 2, apart, waits);
      one_of_another_length(comm, n, 2 * n, apart, waits);
      one_of_another_length(comm, n, 0, apart, waits);
    }
  MPI_Comm_free(&comm);
}

/* The same in the communicator's first collective call, which does not wait. */
SCENARIO(wrong_early) {
  MPI_Comm comm = of_returned_errors(1);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Igather(a, rank ? 1 : 2, MPI_INT, b, 1, MPI_INT, 0, comm, &request);
  CHECK(rank || class_of(code) == MPI_ERR_TRUNCATE);
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

/* What MPI_Waitall leaves in MPI_ERROR. */
SCENARIO(wrong_statuses) {
  MPI_Comm comm = of_returned_errors(0);
  MPI_Request request[3];
  MPI_Status status[3];
  memset(status, 77, sizeof status);
  MPI_Irecv(a, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &request[0]);
  MPI_Isend(b, 1, MPI_INT, (rank + 1) % size, 0, comm, &request[1]);
  request[2] = MPI_REQUEST_NULL;
  MPI_Waitall(3, request, status);
  for (int i = 0; i < 3; ++i) CHECK(status[i].MPI_ERROR == MPI_SUCCESS);
  MPI_Comm_free(&comm);
}

/* What a status tells of a message that was cut. */
SCENARIO(wrong_counts) {
  static char sent[3000000], got[3000000];
  static const int lengths[] = {100, 5000, 60000, 3000000};
  const int whole = atoi(argv[1]); /* whether the host counts all of the message */
  MPI_Comm comm = of_returned_errors(0);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of matched messages */
  for (int k = 0; k < 4; ++k)
    for (int way = 0; way < 3; ++way) {
      const int n = lengths[k], room = n / 2;
      MPI_Request request;
      if (rank == 0) MPI_Send(sent, n, MPI_CHAR, 1, 3, comm);
      if (rank != 1) continue;
      MPI_Status status;
      int code, count = -1;
      if (way == 0) code = MPI_Recv(got, room, MPI_CHAR, 0, 3, comm, &status);
      if (way == 1)
        MPI_Irecv(got, room, MPI_CHAR, MPI_ANY_SOURCE, 3, comm, &request), code = MPI_Wait(&request, &status);
      if (way == 2) {
        MPI_Message message;
        MPI_Mprobe(0, MPI_ANY_TAG, comm, &message, MPI_STATUS_IGNORE);
        code = MPI_Mrecv(got, room, MPI_CHAR, &message, &status);
      }
      CHECK(class_of(code) == MPI_ERR_TRUNCATE);
      MPI_Get_count(&status, MPI_CHAR, &count);
      CHECK(count == (whole ? n : room) && status.MPI_SOURCE == 0 && status.MPI_TAG == 3, "%d of %d by %d", count, n,
            way);
    }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* Persistent requests that are never freed. */
SCENARIO(wrong_kept) {
  MPI_Comm comm = of_returned_errors(0);
  MPI_Request request;
  MPI_Send_init(a, 1, MPI_INT, 0, 0, comm, &request);
  MPI_Recv_init(b, 1, MPI_INT, 0, 0, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Send_init(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Recv_init(b, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
}

/* A message that ends within the first element of what it is received as. */
SCENARIO(wrong_elements) {
  MPI_Comm comm = of_returned_errors(0);
  MPI_Datatype type;
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &type);
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Send("abc", 3, MPI_CHAR, 1, 0, comm);
  if (rank == 0) MPI_Send("abcd", 4, MPI_CHAR, 1, 1, comm);
  if (rank == 1) CHECK(class_of(MPI_Recv(a, 3, type, 0, 0, comm, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  if (rank == 1) CHECK(MPI_Recv(a, 3, type, 0, 1, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}
