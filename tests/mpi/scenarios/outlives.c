/* What goes on while a program only looks, and what outlives its communicator. Two ranks.

     looks                  rank 0 loops over a look, which has to keep its collective going
     outlives_buffered      persistent buffered sends of a communicator that has gone
     outlives_collective    a collective whose communicator is freed before the other rank has begun it
     outlives_first         the same where it is the communicator's first
     outlives_error         a request that fails when its communicator has gone: the world is told, once
     outlives_many          the same with requests of many communicators, which go in another order than they came
     outlives_anybody       a receive from anybody waits when its communicator has gone
     in_place_...           MPI_IN_PLACE where no argument may be it is an error
     first_error            a wrong operator is an error of the call, also in a communicator's first */
#include "scenarios.h"

static int raised, raised_class;

static void note(MPI_Comm* comm, int* code, ...) {
  int world = 0;
  MPI_Comm_compare(*comm, MPI_COMM_WORLD, &world);
  CHECK(world == MPI_IDENT, "an error of another communicator");
  ++raised;
  MPI_Error_class(*code, &raised_class);
}

/* Rank 1 sends when the collective is done, which needs rank 0, which looks for the message. */
static void look(const char* how) {
  MPI_Comm comm, hidden;
  MPI_Request request, received;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Message message;
  enum { many = 300000 };
  static int mine[many], all[many];
  int flag = 0, byte = 0, done = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &hidden);
  set_nearfield(hidden, "off");
  if (!strcmp(how, "window-test")) MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int n = 1; n <= many; n += many - 1) {
    MPI_Barrier(comm);
    if (rank == 0) {
      MPI_Iallreduce(mine, all, n, MPI_INT, MPI_SUM, comm, &request);
      flag = 0;
      if (!strcmp(how, "iprobe")) {
        while (!flag) MPI_Iprobe(1, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&byte, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (!strcmp(how, "improbe")) {
        while (!flag) MPI_Improbe(1, 0, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&byte, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      } else if (!strcmp(how, "hidden-iprobe")) {
        while (!flag) MPI_Iprobe(1, 0, hidden, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&byte, 1, MPI_INT, 1, 0, hidden, MPI_STATUS_IGNORE);
      } else {
        MPI_Group world, other;
        const int one = 1;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &one, &other);
        MPI_Win_post(other, 0, window);
        while (!flag) MPI_Win_test(window, &flag);
        MPI_Group_free(&world);
        MPI_Group_free(&other);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Iallreduce(mine, all, n, MPI_INT, MPI_SUM, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!strcmp(how, "window-test")) {
        MPI_Group world, other;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &done, &other);
        MPI_Win_start(other, 0, window);
        MPI_Win_complete(window);
        MPI_Group_free(&world);
        MPI_Group_free(&other);
      } else {
        MPI_Isend(&byte, 1, MPI_INT, 0, 0, !strcmp(how, "hidden-iprobe") ? hidden : MPI_COMM_WORLD, &received);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
      }
    }
  }
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  MPI_Comm_free(&hidden);
  MPI_Comm_free(&comm);
}

static void buffered(void) {
  static char room[1 << 16];
  int mine[4] = {rank, 2, 3, 4}, theirs[4], size = 0;
  void* at;
  MPI_Comm comm;
  MPI_Request send, receive;
  MPI_Buffer_attach(room, sizeof room);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Bsend_init(mine, 4, MPI_INT, 1 - rank, 1, comm, &send);
  MPI_Recv_init(theirs, 4, MPI_INT, 1 - rank, 1, comm, &receive);
  MPI_Comm_free(&comm);
  for (int i = 0; i < 3; ++i) {
    memset(theirs, -1, sizeof theirs);
    MPI_Start(&receive);
    MPI_Start(&send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK(theirs[0] == 1 - rank && theirs[3] == 4, "another message");
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Buffer_detach(&at, &size);
}

static void collective(int first) {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm, next;
    MPI_Request request[3];
    int mine = rank + round, all[3] = {-1, -1, -1}, token = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!first) MPI_Barrier(comm);
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; ++i) MPI_Iallreduce(&mine, &all[i], 1, MPI_INT, MPI_MAX, comm, &request[i]);
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL, "the handle stays");
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (round % 2) {
      MPI_Comm_dup(MPI_COMM_WORLD, &next); /* may get the same handle */
      MPI_Barrier(next);
      MPI_Comm_free(&next);
    }
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i) CHECK(all[i] == 1 + round, "another result");
  }
}

static void error(void) {
  MPI_Comm comm, next;
  MPI_Request request;
  MPI_Errhandler handler;
  int data[8] = {0};
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank == 1) MPI_Irecv(data, 4, MPI_INT, 0, 1, comm, &request);
  else MPI_Isend(data, 8, MPI_INT, 1, 1, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &next); /* may get the same handle */
  MPI_Comm_set_errhandler(next, MPI_ERRORS_ARE_FATAL);
  MPI_Barrier(MPI_COMM_WORLD);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) {
    CHECK(class_of(code) == MPI_ERR_TRUNCATE, "another error");
    CHECK(raised == 1 && raised_class == MPI_ERR_TRUNCATE, "the world is not told once");
  }
  MPI_Comm_free(&next);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

/* Every third is complete before its communicator goes; handles are used again, by communicators whose errors are fatal. */
static void many(void) {
  enum { comms = 60, each = 5, rounds = 3 };
  MPI_Comm comm[comms], next[comms];
  MPI_Request request[comms][each], other[comms];
  MPI_Errhandler handler;
  static int data[comms][each][8], byte[comms];
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (int round = 0; round < rounds; ++round) {
    raised = 0;
    for (int i = 0; i < comms; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int k = 0; k < each; ++k)
      for (int i = 0; i < comms; ++i) {
        if (k == 0) MPI_Irecv(&byte[i], 1, MPI_INT, 1 - rank, 1000 + i, MPI_COMM_WORLD, &other[i]);
        MPI_Irecv(data[i][k], k % 3 ? 4 : 8, MPI_INT, 1 - rank, k, comm[i], &request[i][k]);
      }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < each; ++k)
      for (int i = 0; i < comms; ++i) MPI_Send(data[i][k], 8, MPI_INT, 1 - rank, k, comm[i]);
    for (int i = 0; i < comms; ++i)
      for (int k = 0; k < each; k += 3) MPI_Wait(&request[(i * 7 + round) % comms][k], MPI_STATUS_IGNORE);
    for (int i = 0; i < comms; ++i) MPI_Comm_free(&comm[(i * 11 + round) % comms]);
    for (int i = 0; i < comms; ++i) {
      MPI_Comm_dup(MPI_COMM_WORLD, &next[i]);
      MPI_Comm_set_errhandler(next[i], MPI_ERRORS_ARE_FATAL);
    }
    for (int i = 0; i < comms; ++i) MPI_Comm_free(&next[i]);
    for (int i = 0; i < comms; ++i)
      for (int k = 0; k < each; ++k)
        if (k % 3) CHECK(class_of(MPI_Wait(&request[i][k], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE, "another error");
    CHECK(raised == 3 * comms, "the world is told %d times", raised);
    for (int i = 0; i < comms; ++i) MPI_Send(&i, 1, MPI_INT, 1 - rank, 1000 + i, MPI_COMM_WORLD);
    MPI_Waitall(comms, other, MPI_STATUSES_IGNORE);
    for (int i = 0; i < comms; ++i) CHECK(byte[i] == i, "another message");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

/* A receive from anybody waits so long that peers are looked after, which must not ask for the communicator. */
static void anybody(void) {
  int mine[4] = {rank, 2, 3, 4}, theirs[7] = {0};
  MPI_Comm comm;
  MPI_Request request;
  MPI_Datatype apart;
  MPI_Type_vector(4, 1, 2, MPI_INT, &apart);
  MPI_Type_commit(&apart);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank == 0) MPI_Irecv(theirs, 1, apart, MPI_ANY_SOURCE, 1, comm, &request);
  MPI_Barrier(comm);
  if (rank == 1) {
    usleep(300000);
    MPI_Send(mine, 4, MPI_INT, 0, 1, comm);
  }
  MPI_Comm_free(&comm);
  if (rank == 0) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(theirs[0] == 1 && theirs[6] == 4, "another message");
  }
  MPI_Type_free(&apart);
}

static void in_place(void) {
  int a[8] = {0}, counts[2] = {1, 1}, places[2] = {0, 1};
  MPI_Comm comm;
  MPI_Request r;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where Open MPI raises them */
  MPI_Barrier(comm);
#define WRONG(call) CHECK((call) != MPI_SUCCESS)
  WRONG(MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
  WRONG(MPI_Iallreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm, &r));
  WRONG(MPI_Scan(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
  WRONG(MPI_Reduce_scatter_block(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
  WRONG(MPI_Reduce_scatter(a, MPI_IN_PLACE, counts, MPI_INT, MPI_SUM, comm));
  WRONG(MPI_Allgather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
  WRONG(MPI_Allgatherv(a, 1, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, comm));
  WRONG(MPI_Alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
  WRONG(MPI_Alltoallv(a, counts, places, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, comm));
  MPI_Comm_free(&comm);
}

static void first_error_of(void) {
  MPI_Comm comm;
  MPI_Request request = MPI_REQUEST_NULL;
  double mine = 1, all = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK(MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_BAND, comm, &request) != MPI_SUCCESS, "no error");
  MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(all == 2, "another result");
  MPI_Comm_free(&comm);
}

SCENARIO(looks) {
  static const char* const ways[] = {"iprobe", "improbe", "hidden-iprobe", "window-test"};
  for (int i = 0; i < 4; ++i)
    if (argc < 2 || !strcmp(argv[1], ways[i])) look(ways[i]);
}
SCENARIO(outlives_buffered) { buffered(); }
SCENARIO(outlives_collective) { collective(0); }
SCENARIO(outlives_first) { collective(1); }
SCENARIO(outlives_error) { error(); }
SCENARIO(outlives_many) { many(); }
SCENARIO(outlives_anybody) { anybody(); }
SCENARIO(in_place_where_it_may_not_be) { in_place(); }
SCENARIO(first_error) { first_error_of(); }
