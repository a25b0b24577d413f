/* Operations that go on while rank 0 sleeps between its calls: the others must be through long before it calls again.
   Arguments: what, milliseconds of sleep. Each of the others prints "early" or "late".

   receive, allreduce, alltoallv, allreduce-planned   rank 0 begins it and sleeps, the others complete it at once
   send                                               the same; rank 0 sends
   idle      nothing is under way: prints how often the thread of ours has run in the meantime, or "no thread"
   abort     rank 0 gives up, with something under way
   level     prints what MPI_Query_thread says */
#include <mpi.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most = 8, n = 1 << 19 }; /* beyond what a sender copies aside, which follows from the caches */
static int rank, size;
static double *given, *got;

static void fill(int round) {
  for (int i = 0; i < n; ++i) given[i] = rank + i + 3 * round, got[i] = -1;
}

static void expect(int right) {
  if (right) return;
  fprintf(stderr, "rank %d: wrong data\n", rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int begin(const char* what, MPI_Request* requests) {
  static int counts[most], places[most];
  int many = 0;
  for (int r = 0; r < size; ++r) counts[r] = n / size, places[r] = r * (n / size);
  if (!strcmp(what, "allreduce"))
    MPI_Iallreduce(given, got, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[many++]);
  else if (!strcmp(what, "alltoallv"))
    MPI_Ialltoallv(given, counts, places, MPI_DOUBLE, got, counts, places, MPI_DOUBLE, MPI_COMM_WORLD, &requests[many++]);
#if MPI_VERSION >= 4
  else if (!strcmp(what, "allreduce-planned")) {
    static MPI_Request planned = MPI_REQUEST_NULL;
    if (planned == MPI_REQUEST_NULL)
      MPI_Allreduce_init(given, got, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &planned);
    MPI_Start(&planned);
    requests[many++] = planned;
  }
#endif
  else if (rank == (strcmp(what, "send") ? 0 : 1))
    for (int r = 0; r < size; ++r) {
      if (r != rank && (rank == 0 || r == 0))
        MPI_Irecv(got + r * (n / size), n / size, MPI_DOUBLE, r, 5, MPI_COMM_WORLD, &requests[many++]);
    }
  else if (rank == 0 || strcmp(what, "send"))
    MPI_Isend(given, n / size, MPI_DOUBLE, rank == 0 ? 1 : 0, 5, MPI_COMM_WORLD, &requests[many++]);
  return many;
}

static void check(const char* what, int round) {
  for (int i = 0; i < n; ++i) {
    const int part = n / size, from = i / part;
    if (!strncmp(what, "allreduce", 9)) expect(got[i] == (double)size * (i + 3 * round) + size * (size - 1) / 2);
    else if (from >= size) break;
    else if (!strcmp(what, "alltoallv")) expect(got[i] == from + i % part + rank * part + 3 * round);
    else if (got[i] != -1) expect(got[i] == from + i % part + 3 * round);
  }
}

static void in_motion(const char* what, int sleep_ms) {
  int late = 0;
  for (int round = 0; round < 4; ++round) {
    MPI_Request requests[most];
    fill(round);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    const int many = begin(what, requests);
    if (rank == 0 && round > 0) usleep(sleep_ms * 1000); /* the first round brings everything about */
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
    if (rank > 0 && round > 0 && (MPI_Wtime() - start) * 1000 > sleep_ms * 3 / 4) ++late;
    check(what, round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank > 0 && (strcmp(what, "send") || rank == 1)) printf("%s\n", late == 0 ? "early" : late == 3 ? "late" : "now and then");
}

/* How often the thread called "nearfield" has given up its CPU; -1: there is none. */
static long sleeps_of_thread(void) {
  long sleeps = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks));) {
    char path[300], line[200];
    if (*task->d_name == '.') continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE* file = fopen(path, "r");
    int ours = 0;
    while (file && fgets(line, sizeof line, file)) {
      if (!strcmp(line, "Name:\tnearfield\n")) ours = 1;
      if (ours) sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
    }
    if (file) fclose(file);
  }
  closedir(tasks);
  return sleeps;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int sleep_ms = atoi(argv[2]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  given = malloc(n * sizeof *given);
  got = malloc(n * sizeof *got);
  if (!strcmp(argv[1], "idle")) {
    in_motion("allreduce", 1);
    usleep(100000);
    const long before = sleeps_of_thread();
    usleep(sleep_ms * 1000);
    if (before < 0) printf("no thread\n");
    else printf("%ld sleeps\n", sleeps_of_thread() - before);
  } else if (!strcmp(argv[1], "abort")) {
    MPI_Request request;
    MPI_Irecv(got, n, MPI_DOUBLE, rank ^ 1, 5, MPI_COMM_WORLD, &request);
    usleep(sleep_ms * 1000);
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (!strcmp(argv[1], "level")) {
    int level;
    MPI_Query_thread(&level);
    printf("%s\n", level == MPI_THREAD_MULTIPLE ? "several" : level == MPI_THREAD_SINGLE ? "single" : "between");
  } else {
    in_motion(argv[1], sleep_ms);
  }
  MPI_Finalize();
  return 0;
}
