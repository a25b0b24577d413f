/* What one rank alone gets wrong must not leave the others waiting, and all ranks must agree on what was no call. */
#include "scenarios.h"

static int a[256], b[256];

static MPI_Comm of_returned_errors(int is_first) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (!is_first) MPI_Barrier(comm);
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

/* A root that gives itself another length than it takes of the others: an error on it. */
SCENARIO(wrong_unequal) {
  MPI_Comm comm = of_returned_errors(0);
  const int code = MPI_Gather(a, 1, MPI_INT, b, 4, MPI_INT, 0, comm);
  CHECK(rank || class_of(code) == MPI_ERR_TRUNCATE);
  MPI_Comm_free(&comm);
}

/* The same in the communicator's first collective call, which does not wait. */
SCENARIO(wrong_early) {
  MPI_Comm comm = of_returned_errors(1);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Igather(a, 1, MPI_INT, b, 4, MPI_INT, 0, comm, &request);
  CHECK(rank || class_of(code) == MPI_ERR_TRUNCATE);
  if (!code) MPI_Wait(&request, MPI_STATUS_IGNORE);
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

/* A root that has more than the others expect, by every row that copies between the buffers of programs: it is cut off,
   nothing behind is written to, and the ranks stay in step. */
SCENARIO(wrong_longer_root) {
  enum { expected = 180000, sent = 200000 };
  static const char* const rows[] = {"bcast:direct", "bcast:direct-pull", "bcast:together"};
  for (int k = 0; k < 3; ++k) {
    MPI_Comm comm = of_returned_errors(0);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nearfield_algorithm", rows[k]);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    char* data = malloc(sent);
    memset(data, rank + 1, sent);
    const int code = MPI_Bcast(data, rank == 1 ? sent : expected, MPI_BYTE, 1, comm);
    CHECK(class_of(code) == (rank == 1 ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "%s: class %d", rows[k], class_of(code));
    CHECK(data[0] == 2 && data[expected - 1] == 2, "%s: it has not come", rows[k]);
    for (int i = expected; i < sent; ++i) REQUIRE(data[i] == rank + 1, "%s: behind the end", rows[k]);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size, "out of step");
    free(data);
    MPI_Comm_free(&comm);
  }
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
