/* Collectives that overlap other calls where messages are the host's. */
#include "scenarios.h"

/* The first rank blocks in the host until the others have completed what it is in as well. */
static void block(void) {
  enum { n = 100000 };
  static int send[n], recv[n];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    int word = 0;
    MPI_Request request;
    for (int i = 0; i < n; ++i) send[i] = rank + i + round;
    MPI_Iallreduce(send, recv, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int r = 1; rank == 0 && r < size; ++r) MPI_Recv(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) REQUIRE(recv[i] == size * (size - 1) / 2 + size * (i + round), "sum, %d", round);
  }
}

static void* thread(void* of) {
  for (int round = 0; round < 10000; ++round) {
    const int mine = *(int*)of * 1000000 + round;
    int sum = -1, later = -1;
    MPI_Request requests[2];
#if HAS_PERSISTENT_COLLECTIVES
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &requests[0]);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
    REQUIRE(sum == mine, "planned, %d", round);
#endif
    MPI_Iallreduce(&mine, &later, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    REQUIRE(later == mine, "non-blocking, %d", round);
  }
  return NULL;
}

/* Where threads are to be had, on a communicator of one rank. */
SCENARIO(without_messages) {
  int provided;
  block();
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  enum { threads = 4 };
  pthread_t ids[threads];
  int numbers[threads];
  for (int i = 0; i < threads; ++i) numbers[i] = i, pthread_create(&ids[i], NULL, thread, &numbers[i]);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
}
