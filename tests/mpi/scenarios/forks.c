/* Large collectives on malloc'ed arrays, between forks. */
#include <sys/wait.h>
#include "scenarios.h"

enum { count = 40000 };
static double *send_buffer, *recv_buffer, *kept;

static void fill(double* at, int round) {
  for (int i = 0; i < count; ++i) at[i] = rank * 1000 + round + i % 7;
}

static void collectives(int round) {
  fill(send_buffer, round);
  MPI_Allreduce(send_buffer, recv_buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double ranks = size * (size - 1) / 2.0 * 1000;
  for (int i = 0; i < count; i += 97) CHECK(recv_buffer[i] == ranks + size * (round + i % 7), "an allreduce is wrong");
  const int root = round % size;
  if (rank == root) fill(recv_buffer, round);
  MPI_Bcast(recv_buffer, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; i += 97) CHECK(recv_buffer[i] == root * 1000 + round + i % 7, "a bcast is wrong");
}

/* The child sees what was there at the fork, and nothing that either side writes later reaches the other. */
static void fork_once(int round) {
  fill(kept, round);
  int pipes[2];
  if (pipe(pipes)) abort();
  const pid_t child = fork();
  if (child == 0) {
    char token;
    close(pipes[1]);
    (void)!read(pipes[0], &token, 1);
    int good = 1;
    for (int i = 0; i < count; ++i) good &= kept[i] == rank * 1000 + round + i % 7;
    memset(kept, 1, count * sizeof *kept);
    memset(send_buffer, 1, count * sizeof *send_buffer);
    _exit(good ? 0 : 1);
  }
  close(pipes[0]);
  kept[5] = -1;
  close(pipes[1]);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0, "the child saw later writes");
  CHECK(kept[5] == -1 && kept[6] == rank * 1000 + round + 6, "the parent saw the child's writes");
}

/* Prints the algorithms that served rank 0. */
SCENARIO(forks) {
  send_buffer = malloc(count * sizeof *send_buffer);
  recv_buffer = malloc(count * sizeof *recv_buffer);
  kept = malloc(count * sizeof *kept);
  char used[4000] = "";
  for (int round = 0; round < 60; ++round) {
    collectives(round);
    if (strlen(used) < 3000) sprintf(used + strlen(used), " %s", last_algorithm());
    if (round % (rank + 3) == 1) fork_once(round); /* some rounds one rank, some all */
    if (round % 5 == 4) { /* what is allocated after a fork can be reached again */
      free(send_buffer);
      free(recv_buffer);
      send_buffer = malloc(count * sizeof *send_buffer);
      recv_buffer = malloc(count * sizeof *recv_buffer);
    }
  }
  if (rank == 0) printf("algorithms%s\n", used);
  free(send_buffer), free(recv_buffer), free(kept);
}
