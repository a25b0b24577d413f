/* Large collectives on malloc'ed arrays, between and during forks. Argument: "threads" forks in a thread of its own.
   Rank 0 prints the algorithms that served it. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { count = 40000 };
static int rank, size, bad, threads;
static double *send_buffer, *recv_buffer, *kept;
static volatile int stop;

static void check(int condition, const char* what) {
  if (!condition && !bad++) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void fill(double* at, int round) {
  for (int i = 0; i < count; ++i) at[i] = rank * 1000 + round + i % 7;
}

static void collectives(int round) {
  fill(send_buffer, round);
  MPI_Allreduce(send_buffer, recv_buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double ranks = size * (size - 1) / 2.0 * 1000;
  for (int i = 0; i < count; i += 97) check(recv_buffer[i] == ranks + size * (round + i % 7), "an allreduce is wrong");
  const int root = round % size;
  if (rank == root) fill(recv_buffer, round);
  MPI_Bcast(recv_buffer, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; i += 97) check(recv_buffer[i] == root * 1000 + round + i % 7, "a bcast is wrong");
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
    if (!threads) memset(send_buffer, 1, count * sizeof *send_buffer);
    _exit(good ? 0 : 1);
  }
  close(pipes[0]);
  kept[5] = -1;
  close(pipes[1]);
  int status = 1;
  waitpid(child, &status, 0);
  check(status == 0, "the child saw later writes");
  check(kept[5] == -1 && kept[6] == rank * 1000 + round + 6, "the parent saw the child's writes");
}

static void* forker(void* unused) {
  for (int i = 0; !stop; ++i) {
    fork_once(i);
    usleep(500);
  }
  return unused;
}

int main(int argc, char** argv) {
  threads = argc > 1 && !strcmp(argv[1], "threads");
  int provided;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* (*last)(void);
  *(void**)&last = dlsym(RTLD_DEFAULT, "nearfield_last_algorithm");
  send_buffer = malloc(count * sizeof *send_buffer);
  recv_buffer = malloc(count * sizeof *recv_buffer);
  kept = malloc(count * sizeof *kept);
  char used[4000] = "";
  pthread_t thread;
  if (threads && rank % 2 == 0) pthread_create(&thread, NULL, forker, NULL);
  for (int round = 0; round < (threads ? 400 : 60); ++round) {
    collectives(round);
    if (!threads && strlen(used) < 3000) sprintf(used + strlen(used), " %s", last ? last() : "?");
    if (!threads && (round % (rank + 3)) == 1) fork_once(round); /* some rounds one rank, some all */
    if (round % 5 == 4) { /* what is allocated after a fork can be reached again */
      free(send_buffer);
      free(recv_buffer);
      send_buffer = malloc(count * sizeof *send_buffer);
      recv_buffer = malloc(count * sizeof *recv_buffer);
    }
  }
  stop = 1;
  if (threads && rank % 2 == 0) pthread_join(thread, NULL);
  int all = 0;
  MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("algorithms%s\n%s\n", used, all ? "bad" : "good");
  MPI_Finalize();
  return all != 0;
}
