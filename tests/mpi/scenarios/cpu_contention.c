/* CPUs that others want as well, and CPUs that are taken away. Results are right and the job ends, whatever waits do.

     contended_rounds PLACES ROUNDS  messages, collectives and one-sided operations, whose results are checked, while all
                                   ranks lie where they are (stay), on one CPU from a third to two thirds of the rounds
                                   (shrink), or each on another CPU every few rounds (wander)
     contention_noticed               rounds on one CPU beside a process that computes, until one rank has noticed it */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "scenarios.h"

enum { large = 30000 }; /* doubles */
static double mine[large], all[large], from[large];

static void allreduce(int round, int n) {
  for (int i = 0; i < n; ++i) mine[i] = rank + round + i % 7;
  MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i)
    REQUIRE(all[i] == size * (size - 1) / 2.0 + size * (round + i % 7), "round %d, %d of %d", round, i, n);
}

static void shift(int round, int n) {
  MPI_Request request[2];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < n; ++i) mine[i] = rank * 1000 + round + i % 5;
  MPI_Irecv(from, n, MPI_DOUBLE, before, round, MPI_COMM_WORLD, &request[0]);
  MPI_Isend(mine, n, MPI_DOUBLE, next, round, MPI_COMM_WORLD, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  for (int i = 0; i < n; ++i) REQUIRE(from[i] == before * 1000 + round + i % 5, "round %d, %d of %d", round, i, n);
}

static void one_round(int round, MPI_Win window, const double* memory) {
  MPI_Request request;
  double sum = 0, value = rank + round;
  allreduce(round, 1);
  shift(round, 1);
  MPI_Iallreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  allreduce(round, large / 4);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size * (size - 1) / 2.0 + size * round, "round %d: %g", round, sum);
  shift(round, large);
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  CHECK(*memory == (rank + size - 1) % size + round, "round %d: %g", round, *memory);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* All threads of the process, as `taskset -ap` does. */
static void lie_on(const cpu_set_t* cpus) {
  DIR* const threads = opendir("/proc/self/task");
  REQUIRE(threads);
  for (struct dirent* one; (one = readdir(threads));)
    if (atoi(one->d_name)) sched_setaffinity(atoi(one->d_name), sizeof *cpus, cpus); /* it may have ended */
  closedir(threads);
}
static cpu_set_t only(const cpu_set_t* cpus, int n) {
  cpu_set_t one;
  CPU_ZERO(&one);
  n %= CPU_COUNT(cpus);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, cpus) && n-- == 0) CPU_SET(cpu, &one);
  return one;
}

SCENARIO(contended_rounds) {
  const char* const places = argv[1];
  const int rounds = atoi(argv[2]);
  cpu_set_t whole, one;
  REQUIRE(!sched_getaffinity(0, sizeof whole, &whole));
  double* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int round = 0; round < rounds; ++round) {
    if (!strcmp(places, "shrink") && round == rounds / 3) one = only(&whole, 0), lie_on(&one);
    if (!strcmp(places, "shrink") && round == rounds * 2 / 3) lie_on(&whole);
    if (!strcmp(places, "wander") && round % 5 == 0) one = only(&whole, rank + round / 5), lie_on(&one);
    one_round(round, window, memory);
  }
  lie_on(&whole);
  MPI_Win_free(&window);
}

SCENARIO(contention_noticed) {
  cpu_set_t whole, one;
  REQUIRE(!sched_getaffinity(0, sizeof whole, &whole));
  /* The first of each node: there is one. */
  const pid_t neighbour = rank == 0 ? fork() : -1;
  if (neighbour == 0) {
    one = only(&whole, 0);
    sched_setaffinity(0, sizeof one, &one);
    alarm(120);
    for (;;) __asm__ volatile("");
  }
  int provided = 0, index = 0, count = 0, noticed = 0;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  REQUIRE(MPI_T_pvar_get_index("nearfield_contention", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
  one = only(&whole, 0);
  lie_on(&one);
  const double end = now() + 60;
  int late = 0;
  while (!noticed && !late) {
    unsigned long long times = 0;
    allreduce(1, 1);
    MPI_T_pvar_read(session, handle, &times);
    int each[2] = {times > 0, now() > end}, any[2];
    MPI_Allreduce(each, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    noticed = any[0], late = any[1];
  }
  CHECK(noticed);
  MPI_T_pvar_handle_free(session, &handle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  lie_on(&whole);
  if (neighbour > 0) {
    kill(neighbour, SIGKILL);
    waitpid(neighbour, NULL, 0);
  }
}
