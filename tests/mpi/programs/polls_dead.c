/* Rank 0 dies while the others poll for it, in a loop that has an end.

     polls_dead WHAT world|dup|split|apart|acknowledged|between

   "split": a communicator of ranks 0 and 1 alone; "apart": one without rank 0, whose death is none of its business;
   "acknowledged": the program knows of it and goes on with receives from anybody; "between": rank 1 receives from rank
   0 in the call by which it sends to rank 2. Survivors print what their call has returned, and how long after the
   death. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double life = 0.3, patience = 5;

static int class_of(int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

static const char* name_of(int class) {
  if (class == MPI_SUCCESS) return "nothing";
#ifdef OPEN_MPI
  if (class == MPI_ERR_PROC_FAILED) return "failed";
  if (class == MPI_ERR_PROC_FAILED_PENDING) return "pending";
#endif
  return "otherwise";
}

static int is(const char* what, const char* name) { return !strcmp(what, name); }

static int query(void* state, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int nothing(void* state) { return MPI_SUCCESS; }
static int not_cancelled(void* state, int complete) { return MPI_SUCCESS; }

static int first_error(int code, int count, const MPI_Status* statuses) {
  if (class_of(code) != MPI_ERR_IN_STATUS) return code;
  for (int i = 0; i < count; ++i)
    if (statuses[i].MPI_ERROR != MPI_SUCCESS) return statuses[i].MPI_ERROR;
  return code;
}

static char big[4 << 20];
static int from[64], to[64], counts[64], places[64], values[4];

/* What is polled for, as requests. */
static int begin(const char* what, MPI_Comm comm, MPI_Request* requests) {
  int count = 1;
  if (is(what, "send")) MPI_Isend(big, sizeof big, MPI_BYTE, 0, 8, comm, &requests[0]);
  else if (is(what, "any")) MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, &requests[0]);
  else if (is(what, "ibarrier")) MPI_Ibarrier(comm, &requests[0]);
  else if (is(what, "iallreduce")) MPI_Iallreduce(&values[0], &values[1], 1, MPI_INT, MPI_SUM, comm, &requests[0]);
  else if (is(what, "ialltoallv"))
    MPI_Ialltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, comm, &requests[0]);
  else if (is(what, "persistent")) {
    MPI_Recv_init(&values[0], 1, MPI_INT, 0, 7, comm, &requests[0]);
    MPI_Start(&requests[0]);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
  } else if (is(what, "partitioned") || is(what, "parrived")) {
    MPI_Precv_init(values, 4, 1, MPI_INT, 0, 7, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Start(&requests[0]);
#endif
  } else {
    MPI_Irecv(&values[0], 1, MPI_INT, 0, 7, comm, &requests[0]);
    count = 2;
    if (strstr(what, "mixed")) MPI_Grequest_start(query, nothing, not_cancelled, NULL, &requests[1]);
    else MPI_Irecv(&values[1], 1, MPI_INT, 0, 9, comm, &requests[1]);
  }
  return count;
}

static int poll(const char* what, MPI_Comm comm, int count, MPI_Request* requests, int* flag) {
  MPI_Status statuses[2];
  MPI_Message message;
  int index, indices[2], code;
  *flag = 0;
  if (is(what, "iprobe")) return MPI_Iprobe(0, 5, comm, flag, &statuses[0]);
  if (is(what, "any_iprobe")) return MPI_Iprobe(MPI_ANY_SOURCE, 5, comm, flag, &statuses[0]);
  if (is(what, "improbe")) return MPI_Improbe(0, 5, comm, flag, &message, &statuses[0]);
  if (is(what, "get_status")) return MPI_Request_get_status(requests[0], flag, &statuses[0]);
  if (is(what, "testall")) {
    code = MPI_Testall(count, requests, flag, statuses);
    return first_error(code, count, statuses);
  }
  if (strstr(what, "testany")) return MPI_Testany(count, requests, &index, flag, &statuses[0]);
  if (strstr(what, "testsome")) {
    code = MPI_Testsome(count, requests, &index, indices, statuses);
    *flag = index != 0;
    return first_error(code, index, statuses);
  }
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
  if (is(what, "parrived")) return MPI_Parrived(requests[0], 1, flag);
#endif
  return MPI_Test(&requests[0], flag, &statuses[0]);
}

/* Rank 1, in one call, receives from rank 0 and sends to rank 2, which receives long after the death. */
static void between(const char* what, int rank, double start) {
  static char got[sizeof big];
  const int n = strstr(what, "short") ? 8 : sizeof big, before = rank - 1, after = rank + 1;
  int code = MPI_SUCCESS, done;
  MPI_Comm chain;
  /* A short message leaves at once, so there rank 1 also receives from rank 2. */
  const int both_ways = is(what, "short"), sources[] = {before, 2}, target = rank == 2 ? 1 : after;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, (rank > 0) + (both_ways && rank == 1), sources, MPI_UNWEIGHTED,
                                 rank < 2 || both_ways, &target, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &chain);
  MPI_Comm_set_errhandler(chain, MPI_ERRORS_RETURN);
  MPI_Barrier(chain);
  if (rank == 0) {
    usleep(life * 1e6);
    raise(SIGKILL);
  }
  memset(big, rank, n);
  if (rank == 2) usleep(3 * life * 1e6);
  MPI_Request request = MPI_REQUEST_NULL;
  if (is(what, "neighbor") || is(what, "short")) {
    code = MPI_Neighbor_alltoall(big, n, MPI_BYTE, got, n, MPI_BYTE, chain);
  } else if (is(what, "ineighbor") || is(what, "waited")) {
    MPI_Ineighbor_alltoall(big, n, MPI_BYTE, got, n, MPI_BYTE, chain, &request);
#ifdef OPEN_MPI
  } else if (rank == 1 && is(what, "isendrecv")) {
    MPI_Isendrecv(big, n, MPI_BYTE, 2, 1, got, n, MPI_BYTE, 0, 1, chain, &request);
#endif
  } else if (rank == 1) {
    code = MPI_Sendrecv(big, n, MPI_BYTE, 2, 1, got, n, MPI_BYTE, 0, 1, chain, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Recv(got, n, MPI_BYTE, 1, 1, chain, MPI_STATUS_IGNORE);
  }
  if (is(what, "waited")) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (request != MPI_REQUEST_NULL && code == MPI_SUCCESS) code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  if (rank == 1) memset(big, 9, n); /* it is the program's again */
  if (rank == 1 && both_ways && got[2 * n - 1] != 2) printf("the data of the living are missing\n");
  if (rank == 2 && code == MPI_SUCCESS && got[0] == 1 && got[n - 1] == 1) printf("rank 2: received\n");
  else printf("rank %d: %s after %.3f s\n", rank, name_of(class_of(code)), MPI_Wtime() - start - life);
  fflush(stdout);
  for (const double end = MPI_Wtime() + 1; MPI_Wtime() < end;)
    MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &done, MPI_STATUS_IGNORE);
  _exit(0);
}

int main(int argc, char** argv) {
  int rank, size, flag = 0;
  const char *what = argv[1], *where = argv[2];
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef OPEN_MPI
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#endif
  for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = i;
  if (is(where, "dup")) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (is(where, "split")) MPI_Comm_split(MPI_COMM_WORLD, rank > 1, rank, &comm);
  if (is(where, "apart")) MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &comm);
  int warm = 1, sum = 0, members, me;
  MPI_Comm_size(comm, &members);
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&warm, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Sendrecv(&rank, 1, MPI_INT, (me + 1) % members, 1, &sum, 1, MPI_INT, (me + members - 1) % members, 1, comm,
               MPI_STATUS_IGNORE);
  const double start = MPI_Wtime();
  if (is(where, "between")) between(what, rank, start);
  if (rank == 0) {
    usleep(life * 1e6);
    raise(SIGKILL);
  }
  MPI_Request requests[2];
  if (is(where, "apart")) {
    /* Ranks 1 and 2 go on, long after rank 0 is known to be dead. */
    int good = 0;
    MPI_Irecv(&good, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, &requests[0]);
    while (MPI_Wtime() - start < 4 * life) {
      const int code = is(what, "any") ? MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE)
                                       : MPI_Iprobe(MPI_ANY_SOURCE, 9, comm, &flag, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) printf("%s in a communicator without the dead\n", name_of(class_of(code)));
    }
    MPI_Send(&warm, 1, MPI_INT, 1 - me, 7, comm);
    if (MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS && good && me == 0) printf("apart\n");
    fflush(stdout);
    MPI_Barrier(comm);
    _exit(0);
  }
  int code = MPI_SUCCESS;
  if (!is(where, "split") || rank == 1) {
    const int count = begin(what, comm, requests);
    while (!flag && code == MPI_SUCCESS && MPI_Wtime() - start < patience)
      code = poll(what, comm, count, requests, &flag);
    printf("rank %d: %s after %.3f s\n", rank, name_of(class_of(code)), MPI_Wtime() - start - life);
#ifdef OPEN_MPI
    if (is(where, "acknowledged")) {
      MPIX_Comm_failure_ack(comm);
      if (rank == 2) {
        usleep(300000); /* rank 1 is to notice the death first */
        MPI_Send(&rank, 1, MPI_INT, 1, 7, comm);
      } else if (MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS && values[0] == 2) printf("received\n");
    }
#endif
    fflush(stdout);
  }
  usleep(200000);
  _exit(0);
}
