/* How much of an MPI_Iallreduce of doubles passes while the ranks compute: 1 - (total - compute) / communicate, where
   each of the three is the median of five loops, taken in turns. What is sent is written before each call and what has
   come is read after it, in all three; the time of that alone is taken from communicate. Then what the progress
   thread (NEARFIELD_PROGRESS=thread) costs while
   nothing is under way.

     mpicc -O2 bench/overlap.c -o overlap
     NEARFIELD_PROGRESS=thread nearfield run mpiexec -n 2 ./overlap 1048576 0,0

   The numbers are bytes, and the CPU that each rank is bound to; none: they stay where they are. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { loops = 16, rounds = 5 };
enum part { communicate, compute, both, parts };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static volatile double sink;
static void work(long turns) {
  double x = 1;
  for (long i = 0; i < turns; ++i) x = x * 1.0000001 + 1e-9;
  sink = x;
}

static double *out, *in;
static int n;

/* Seconds of a turn, of the rank that takes longest. Ranks do not wait for each other between turns: where they share a
   CPU, what a turn takes depends on whose turn it is. */
static double once(enum part part, long turns) {
  MPI_Request request;
  double took, longest, sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  took = -MPI_Wtime();
  for (int loop = 0; loop < loops; ++loop) {
    for (int i = 0; i < n; ++i) out[i] = i;
    if (part != compute) MPI_Iallreduce(out, in, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (part != communicate) work(turns);
    if (part != compute) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; ++i) sum += in[i];
  }
  took = (took + MPI_Wtime()) / loops;
  sink = sum;
  MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return longest;
}

static double median(double* took, int many) {
  qsort(took, (size_t)many, sizeof *took, compare);
  return took[many / 2];
}

/* CPU time of the thread called "nearfield", in seconds; negative: there is none. */
static double thread_seconds(void) {
  double seconds = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks));) {
    char path[300], name[32] = "";
    unsigned long long ns;
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    if (fscanf(file, "%31s", name) != 1) *name = 0;
    fclose(file);
    if (strcmp(name, "nearfield")) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    if ((file = fopen(path, "r"))) {
      if (fscanf(file, "%llu", &ns) == 1) seconds = (double)ns * 1e-9;
      fclose(file);
    }
  }
  closedir(tasks);
  return seconds;
}

static void bind(int rank, const char* list) {
  cpu_set_t cpus;
  for (; rank > 0 && (list = strchr(list, ',')); --rank) ++list;
  if (!list) return;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(list), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

int main(int argc, char** argv) {
  int rank;
  const int bytes = argc > 1 ? atoi(argv[1]) : 1 << 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 2) bind(rank, argv[2]);
  n = bytes / (int)sizeof *out;
  out = calloc((size_t)n, sizeof *out);
  in = calloc((size_t)n, sizeof *in);
  usleep(1500000); /* the progress thread looks again where ranks are bound */
  once(communicate, 0);
  const double alone = once(communicate, 0);
  long turns = 1000;
  while (once(compute, turns) < (argc > 3 ? atof(argv[3]) * 1e-3 : 3 * alone)) turns += turns / 2;
  double each[parts][rounds], fills[rounds], took[parts], thread = thread_seconds(), wall = -MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    for (int part = 0; part < parts; ++part) each[part][i] = once(part, turns);
    fills[i] = once(compute, 0);
  }
  for (int part = 0; part < parts; ++part) took[part] = median(each[part], rounds);
  const double fill = median(fills, rounds);
  wall += MPI_Wtime();
  thread = thread_seconds() - thread;
  usleep(200000);
  double idle = thread_seconds();
  usleep(2000000);
  idle = thread_seconds() - idle;
  if (rank == 0)
    printf("%d bytes: communicate %.0f us, compute %.0f us, both %.0f us: overlap %.2f; writing and reading alone %.0f us\n"
           "progress thread: %.1f %% of a CPU in these loops, %.3f %% while nothing is under way\n",
           bytes, took[communicate] * 1e6, took[compute] * 1e6, took[both] * 1e6,
           1 - (took[both] - took[compute]) / (took[communicate] - fill), fill * 1e6, thread / wall * 100, idle / 2 * 100);
  MPI_Finalize();
  return 0;
}
