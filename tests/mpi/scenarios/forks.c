/* Large collectives on malloc'ed arrays, between forks and during those of a thread. */
#include <sys/wait.h>
#include "scenarios.h"
#include "../../heap/pinned.h"

enum { count = 40000 };
static int threads;
static double *send_buffer, *recv_buffer, *kept;
static volatile int stop;

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
    if (!threads) memset(send_buffer, 1, count * sizeof *send_buffer);
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

static void* forker(void* unused) {
  for (int i = 0; !stop; ++i) {
    fork_once(i);
    usleep(500);
  }
  return unused;
}

static void run(int with_threads) {
  threads = with_threads, stop = 0;
  send_buffer = malloc(count * sizeof *send_buffer);
  recv_buffer = malloc(count * sizeof *recv_buffer);
  kept = malloc(count * sizeof *kept);
  char used[4000] = "";
  pthread_t thread;
  if (threads && rank % 2 == 0) pthread_create(&thread, NULL, forker, NULL);
  for (int round = 0; round < (threads ? 400 : 60); ++round) {
    collectives(round);
    if (!threads && strlen(used) < 3000) sprintf(used + strlen(used), " %s", last_algorithm());
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
  if (rank == 0 && !threads) printf("algorithms%s\n", used);
  free(send_buffer), free(recv_buffer), free(kept);
}
/* Prints the algorithms that served rank 0. */
SCENARIO(forks) { run(0); }
SCENARIO(forks_threads) { run(1); }

/* A block that both sides of a fork store to: neither sees the other's. */
static void fork_over(unsigned char* block, size_t bytes, int before) {
  memset(block, before, bytes);
  int to_child[2], to_parent[2];
  if (pipe(to_child) || pipe(to_parent)) abort();
  const pid_t child = fork();
  if (child == 0) {
    char token;
    (void)!read(to_child[0], &token, 1); /* the parent has stored */
    const int good = block[0] == before && block[bytes - 1] == before;
    memset(block, before + 1, bytes);
    (void)!write(to_parent[1], "x", 1);
    (void)!read(to_child[0], &token, 1);
    _exit(good && block[0] == before + 1 ? 0 : 1);
  }
  char token;
  block[0] = block[bytes - 1] = (unsigned char)(before + 2);
  (void)!write(to_child[1], "x", 1);
  (void)!read(to_parent[0], &token, 1); /* the child has stored */
  CHECK(block[0] == before + 2 && block[bytes / 2] == before, "the parent sees stores of its child");
  block[1] = 77;
  (void)!write(to_child[1], "x", 1);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0, "the child sees stores of its parent");
  for (int i = 0; i < 2; ++i) close(to_child[i]), close(to_parent[i]);
}

static void pass_on(unsigned char* from, unsigned char* to, int bytes, int value) {
  memset(from, value + rank, (size_t)bytes);
  MPI_Sendrecv(from, bytes, MPI_BYTE, (rank + 1) % size, 0, to, bytes, MPI_BYTE, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int sent = value + (rank + size - 1) % size;
  CHECK(to[0] == sent && to[bytes - 1] == sent, "a message is wrong");
}

/* What of memory of MPI is the program's own: that of MPI_Alloc_mem, and of a window of one rank. */
SCENARIO(forks_allocated) {
  enum { small = 64, large = 1 << 20 };
  unsigned char *a, *b, *c, *of_window;
  MPI_Win alone;
  MPI_Alloc_mem(small, MPI_INFO_NULL, &a);
  MPI_Alloc_mem(large, MPI_INFO_NULL, &b);
  MPI_Alloc_mem(large, MPI_INFO_NULL, &c);
  MPI_Win_allocate(large, 1, MPI_INFO_NULL, MPI_COMM_SELF, &of_window, &alone);
  for (int round = 0; round < 3; ++round) {
    fork_over(a, small, 10 * round);
    fork_over(b, large, 10 * round + 3);
    fork_over(of_window, large, 10 * round + 6);
    pass_on(b, c, large, 40 + round);
    if (round == 1) { /* what is allocated afterwards is reached as before */
      MPI_Free_mem(b);
      MPI_Alloc_mem(large, MPI_INFO_NULL, &b);
      pass_on(c, b, large, 60);
    }
  }
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, alone);
  unsigned char got = 0;
  of_window[5] = 9;
  MPI_Get(&got, 1, MPI_BYTE, 0, 5, 1, MPI_BYTE, alone);
  MPI_Win_unlock(0, alone);
  CHECK(got == 9);
  MPI_Win_free(&alone);
  MPI_Free_mem(a), MPI_Free_mem(b), MPI_Free_mem(c);
}

/* Memory of MPI_Alloc_mem that a window offers to others: they reach it after a fork, and the child is apart. */
SCENARIO(forks_window) {
  enum { bytes = 1 << 20 };
  unsigned char* block;
  MPI_Win win;
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block);
  MPI_Win_create(block, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int round = 0; round < 3; ++round) {
    fork_over(block, bytes, 10 * round);
    MPI_Win_fence(0, win);
    const unsigned char put = (unsigned char)(100 + rank + round);
    MPI_Put(&put, 1, MPI_BYTE, (rank + 1) % size, bytes - 1, 1, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK(block[bytes - 1] == 100 + (rank + size - 1) % size + round, "what was put after a fork has not arrived");
  }
  MPI_Win_free(&win);
  MPI_Free_mem(block);
}

/* What the kernel has pinned is the process's own after a fork, and a message from it has what the process stored. */
static void fork_pinned(unsigned char* block, int bytes) {
  memset(block, 'a', (size_t)bytes);
  struct pinned buffer;
  if (pin(&buffer, block, (size_t)bytes)) {
    if (rank == 0) printf("no io_uring\n");
    return;
  }
  for (int value = 'b'; value < 'e'; ++value) {
    const pid_t child = fork();
    if (child == 0) _exit(block[0] == value - 1 && block[bytes - 1] == value - 1 ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child sees stores of its parent");
    memset(block, value, (size_t)bytes);
    const int seen = seen_by_kernel(&buffer);
    CHECK(seen == value, "the kernel sees '%c' in a pinned buffer, not '%c'", seen, value);
    pass_on(block, block + bytes / 2, bytes / 2, value);
    memset(block, value, (size_t)bytes);
  }
  unpin(&buffer);
}
SCENARIO(forks_pinned) {
  enum { bytes = 1 << 20 };
  unsigned char *plain = malloc(bytes), *allocated;
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &allocated);
  fork_pinned(plain, bytes);
  fork_pinned(allocated, bytes);
  free(plain);
  MPI_Free_mem(allocated);
}
