/* Collectives and messages on memory that lies in no heap and no segment: shared mappings of files of the program's
   own. Prints the algorithms that carried the collectives. */
#include <sys/mman.h>
#include "scenarios.h"

enum { count = 100000, rounds = 30 };

static double* memory(void) {
  const size_t bytes = count * sizeof(double);
  const int fd = memfd_create("foreign", 0); /* stays open */
  if (fd < 0 || ftruncate(fd, (off_t)bytes)) MPI_Abort(MPI_COMM_WORLD, 2);
  double* at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  return at;
}

static int all_are(const double* at, double value) {
  for (int i = 0; i < count; ++i)
    if (at[i] != value) return 0;
  return 1;
}

SCENARIO(foreign) {
  const int n = size;
  double* buffer[3] = {memory(), memory(), memory()};
  const char* used[2] = {"none", "none"};
  for (int i = 0; i < rounds; ++i) {
    double *send = buffer[i % 3], *recv = buffer[(i + 1) % 3];
    for (int k = 0; k < count; ++k) send[k] = rank + i, recv[k] = -1;
    MPI_Allreduce(send, recv, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all_are(recv, n * i + n * (n - 1) / 2));
    used[0] = last_algorithm();
    if (rank == i % n)
      for (int k = 0; k < count; ++k) recv[k] = 1000 + i;
    MPI_Bcast(recv, count, MPI_DOUBLE, i % n, MPI_COMM_WORLD);
    CHECK(all_are(recv, 1000 + i));
    used[1] = last_algorithm();
    const int to = (rank + 1) % n, from = (rank + n - 1) % n;
    for (int k = 0; k < count; ++k) send[k] = rank * 100 + i;
    MPI_Sendrecv(send, count, MPI_DOUBLE, to, 1, recv, count, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(all_are(recv, from * 100 + i));
  }
  if (rank == 0) printf("algorithms %s %s\n", used[0], used[1]);
}
