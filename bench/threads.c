/* Threads of two ranks that answer each other by messages of one tag, so that any of them may get any message: 1, 2, 4
   and 8 of each rank. Microseconds of a round trip and of the processors that it takes, the median of five loops, and
   how much longer the last thread has taken than the first.

     mpicc -O2 -pthread bench/threads.c -o threads && nearfield run mpiexec -n 2 ./threads [round trips of a thread] */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { loops = 5, most_threads = 8, there = 7, back = 8 };

static int rank, bytes, trips;
static double took[most_threads];

static void* serve(void* own) {
  double* const seconds = own;
  char* const data = calloc((size_t)bytes, 1);
  const double start = MPI_Wtime();
  for (int i = 0; i < trips; ++i) {
    if (rank == 0) MPI_Send(data, bytes, MPI_CHAR, 1, there, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_CHAR, 1 - rank, rank == 0 ? back : there, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, bytes, MPI_CHAR, 0, back, MPI_COMM_WORLD);
  }
  *seconds = MPI_Wtime() - start;
  free(data);
  return NULL;
}

static double of_timeval(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }
static double processor_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return of_timeval(used.ru_utime) + of_timeval(used.ru_stime);
}

static int order(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(int threads) {
  double wall[loops], processors[loops], apart[loops];
  for (int loop = 0; loop < loops; ++loop) {
    pthread_t thread[most_threads];
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime(), used = processor_seconds();
    for (int t = 0; t < threads; ++t) pthread_create(&thread[t], NULL, serve, &took[t]);
    for (int t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
    wall[loop] = MPI_Wtime() - start;
    processors[loop] = processor_seconds() - used;
    MPI_Allreduce(MPI_IN_PLACE, &processors[loop], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    qsort(took, (size_t)threads, sizeof *took, order);
    apart[loop] = took[threads - 1] / took[0];
  }
  qsort(wall, loops, sizeof *wall, order);
  qsort(processors, loops, sizeof *processors, order);
  qsort(apart, loops, sizeof *apart, order);
  const double each = 1e6 / trips / threads;
  if (rank == 0)
    printf("%7d threads %8d bytes %9.2f us %9.2f us of processors, last by first %.2f\n", threads, bytes,
           wall[loops / 2] * each, processors[loops / 2] * each, apart[loops / 2]);
}

int main(int argc, char** argv) {
  static const int sizes[] = {8, 4096, 65536};
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  trips = argc > 1 ? atoi(argv[1]) : 1000;
  for (int s = 0; s < 3 && provided == MPI_THREAD_MULTIPLE; ++s)
    for (int threads = 1; threads <= most_threads; threads *= 2) {
      bytes = sizes[s];
      measure(threads);
    }
  MPI_Finalize();
}
