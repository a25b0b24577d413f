/* Many messages between malloc'ed blocks are under way when both ranks fork: what arrives later is the parent's, and
   the child keeps what it had. Empty synchronous messages come and go meanwhile. */
#include <sys/wait.h>
#include "scenarios.h"

enum { many = 600, bytes = 96 << 10 };
static char* block[many];
static MPI_Request request[many];

static int filled(const char* at, int value) {
  for (int i = 0; i < bytes; i += 511)
    if (at[i] != (char)value) return 0;
  return at[bytes - 1] == (char)value;
}

SCENARIO(forks_in_flight) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < many; ++i) {
      block[i] = malloc(bytes);
      memset(block[i], rank == 0 ? i + round : -1, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Receives are matched as the sends come, and then written by either side. */
    for (int i = 0; i < many; ++i) {
      if (rank == 0) MPI_Isend(block[i], bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request[i]);
      else MPI_Irecv(block[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
      if (i % 100 == 50) {
        MPI_Request empty;
        if (rank == 0) MPI_Issend(NULL, 0, MPI_BYTE, 1, many, MPI_COMM_WORLD, &empty);
        else MPI_Irecv(NULL, 0, MPI_BYTE, 0, many, MPI_COMM_WORLD, &empty);
        MPI_Wait(&empty, MPI_STATUS_IGNORE);
      }
    }
    int ends[2];
    if (pipe(ends)) abort();
    const pid_t child = fork();
    if (child == 0) {
      char token;
      close(ends[1]);
      (void)!read(ends[0], &token, 1);
      int same = 1;
      for (int i = 0; i < many && rank == 0; ++i) same &= filled(block[i], i + round);
      for (int i = 0; i < many && rank == 1; ++i) same &= block[i][7] == -1 || block[i][7] == (char)(i + round);
      _exit(!same);
    }
    close(ends[0]);
    MPI_Waitall(many, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < many; ++i) {
      CHECK(filled(block[i], i + round), "block %d of round %d", i, round);
      memset(block[i], 99, bytes);
    }
    close(ends[1]);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(!status, "the child of round %d saw later writes", round);
    for (int i = 0; i < many; ++i) free(block[i]);
  }
}
