/* Known calls at known places, for tests of what is recorded. recorded SCENARIO [PARAMETER]. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

__attribute__((noinline)) static void sums(int calls) {
  double in[128], out[128];
  memset(in, 0, sizeof in);
  for (int i = 0; i < calls; ++i) MPI_Allreduce(in, out, 128, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void ring(MPI_Comm comm, int calls) {
  int mine = rank, other;
  for (int i = 0; i < calls; ++i)
    if (rank % 2 == 0) MPI_Send(&mine, 1, MPI_INT, 1 - rank % 2, 7, comm);
    else MPI_Recv(&other, 1, MPI_INT, 1 - rank % 2, 7, comm, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void lists(void) {
  int counts[64], places[64], in[256], out[256];
  memset(in, 0, sizeof in);
  for (int i = 0; i < size; ++i) counts[i] = 2, places[i] = 2 * i;
  MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 3, MPI_INT, MPI_COMM_WORLD);
  MPI_Scatter(in, 4, MPI_INT, rank ? (void*)out : MPI_IN_PLACE, 4, MPI_INT, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void late(int microseconds) {
  if (rank == 1) usleep((useconds_t)microseconds);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Of two groups, rank 0 and all others; counts behind those of one's own group are never read. */
__attribute__((noinline)) static void groups(int microseconds) {
  int counts[64], value = 0;
  double in[64] = {0}, out[64];
  MPI_Comm local, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank ? 0 : 1, 3, &both);
  for (int i = 0; i < 64; ++i) counts[i] = 1000000;
  for (int i = 0; i < (rank ? size - 1 : 1); ++i) counts[i] = rank ? 2 : 2 * (size - 1);
  MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, both);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, both, MPI_STATUS_IGNORE); /* from rank 2 */
  if (rank == 2) {
    usleep((useconds_t)microseconds);
    MPI_Send(&value, 1, MPI_INT, 0, 7, both);
  }
  MPI_Comm_free(&both);
  MPI_Comm_free(&local);
}

__attribute__((noinline)) static void to_the_host(void) {
  char name[64] = "/tmp/recorded-XXXXXX";
  MPI_File file;
  int descriptor = mkstemp(name);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_close(&file);
  close(descriptor);
  unlink(name);
}

int main(int argc, char** argv) {
  const char* scenario = argc > 1 ? argv[1] : "all";
  const int parameter = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Comm pairs;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strcmp(scenario, "loop")) { /* 8 bytes, for the time of a call */
    double in = 1, out, best = 1e9;
    for (int run = 0; run < 20; ++run) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < parameter; ++i) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      const double each = (MPI_Wtime() - start) / parameter;
      if (each < best) best = each;
    }
    if (rank == 0) printf("%.1f ns a call\n", best * 1e9);
    MPI_Finalize();
    return 0;
  }
  if (!strcmp(scenario, "dies")) {
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(3);
  }
  if (!strcmp(scenario, "groups")) {
    groups(parameter);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pairs);
  MPI_Comm_set_name(pairs, "pairs");
  sums(10);
  ring(pairs, 25);
  lists();
  late(parameter);
  to_the_host();
  if (!strcmp(scenario, "exit")) exit(3);
  if (!strcmp(scenario, "killed")) {
    const double end = MPI_Wtime() + 3;
    while (MPI_Wtime() < end) sums(1);
    printf("rank %d goes on\n", rank), fflush(stdout);
    for (;;) sums(1);
  }
  MPI_Comm_free(&pairs);
  MPI_Finalize();
  return 0;
}
