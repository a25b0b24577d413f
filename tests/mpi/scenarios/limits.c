/* What limits and the system's calls about memory mean to a program. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "scenarios.h"

enum { count = 200000 };

static void reduce(double* from, double* to) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < count; ++i) from[i] = i + round;
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) REQUIRE(to[i] == size * (double)(i + round));
  }
}
static void communicate(void) {
  double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
  REQUIRE(from && to);
  reduce(from, to);
  free(from);
  free(to);
}

static long resident_mib(void) {
  long total, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) abort();
  fclose(file);
  return resident >> 8;
}

SCENARIO(limits_communicate) { communicate(); }
/* Most of what a limit of 8 GiB allows. */
SCENARIO(limits_malloc) {
  communicate();
  const size_t bytes = (size_t)5000 << 20;
  char* much = malloc(bytes);
  REQUIRE(much);
  much[0] = much[bytes - 1] = 1;
  free(much);
}
/* Whether the mapping at that place is locked. */
static int is_locked(const void* at) {
  char line[300];
  unsigned long begin, end;
  int here = 0, locked = 0;
  FILE* file = fopen("/proc/self/smaps", "r");
  if (!file) abort();
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) here = begin <= (size_t)at && (size_t)at < end;
    else if (here && !strncmp(line, "VmFlags:", 8)) locked = strstr(line, " lo") != NULL;
  fclose(file);
  return locked;
}
SCENARIO(limits_mlockall) {
  communicate();
  char* block = malloc(64 << 20);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  communicate();
  MPI_Comm_free(&other);
  const long resident = resident_mib();
  CHECK(resident >= 64 && resident <= 1000, "%ld MiB are resident", resident);
  munlockall();
  /* As they are touched: a fork leaves them locked. */
  CHECK(!is_locked(block));
  CHECK(mlockall(MCL_CURRENT | MCL_ONFAULT) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  CHECK(is_locked(block));
  munlockall();
  free(block);
}

static rlim_t status_kib(const char* what) {
  char line[200];
  unsigned long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  if (!file) abort();
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, what, strlen(what))) sscanf(line + strlen(what), ": %lu", &kib);
  fclose(file);
  return kib;
}
/* Collectives that do not wait, where the program has less than a stack's memory left. */
SCENARIO(limits_data) {
  struct rlimit before, limit;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(MPI_COMM_WORLD);
  getrlimit(RLIMIT_DATA, &before);
  limit = before;
  limit.rlim_cur = (status_kib("VmData") + 64) << 10;
  REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
  for (int round = 0; round < 4; ++round) {
    const MPI_Comm comm = round % 2 ? other : MPI_COMM_WORLD;
    int mine = rank + 1, sum = 0, largest = 0, told = rank == 0 ? 7 : 0;
    MPI_Request requests[4];
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibcast(&told, 1, MPI_INT, 0, comm, &requests[1]);
    MPI_Iallreduce(&mine, &largest, 1, MPI_INT, MPI_MAX, comm, &requests[2]);
    MPI_Ibarrier(comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(sum == size * (size + 1) / 2 && told == 7 && largest == size);
  }
  setrlimit(RLIMIT_DATA, &before);
  MPI_Comm_free(&other);
}

static const struct {
  const char* name;
  int what;
} resources[] = {{"as", RLIMIT_AS},         {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},
                 {"nofile", RLIMIT_NOFILE}, {"memlock", RLIMIT_MEMLOCK}, {"stack", RLIMIT_STACK}};

static void message(char* data, size_t bytes) {
  for (int round = 0; round < 6; ++round) {
    const int sender = round % 2;
    if (rank == sender) {
      memset(data, 'a' + round, bytes);
      for (int to = 0; to < size; ++to)
        if (to != rank) MPI_Send(data, (int)bytes, MPI_CHAR, to, round, MPI_COMM_WORLD);
    } else {
      memset(data, 0, bytes);
      MPI_Recv(data, (int)bytes, MPI_CHAR, sender, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(data[0] == 'a' + round && data[bytes - 1] == 'a' + round);
    }
  }
}

/* NAME VALUE RANK seen|unseen: a limit that this rank, or -1 all of them, sets when MPI is up and nothing has been sent;
   unseen: by the system call. */
SCENARIO(limits_arrive) {
  REQUIRE(argc == 5);
  const int who = atoi(argv[3]);
  double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
  MPI_Barrier(MPI_COMM_WORLD);
  if (who < 0 || who == rank)
    for (size_t i = 0; i < sizeof resources / sizeof *resources; ++i)
      if (strcmp(resources[i].name, argv[1]) == 0) {
        struct rlimit limit;
        getrlimit(resources[i].what, &limit);
        limit.rlim_cur = strtoull(argv[2], NULL, 10);
        if (!strcmp(argv[4], "seen")) REQUIRE(setrlimit(resources[i].what, &limit) == 0);
        else REQUIRE(syscall(SYS_prlimit64, 0, resources[i].what, &limit, NULL) == 0);
      }
  MPI_Barrier(MPI_COMM_WORLD);
  for (size_t bytes = 8; bytes <= count * sizeof *to; bytes *= 8) message((char*)to, bytes);
  reduce(from, to);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  CHECK(sum == size);
  MPI_Comm_free(&other);
  free(from);
  free(to);
}
