/* Collectives in their three forms, blocking, non-blocking and persistent, the latter two waited for at once, by the
   host and by Nearfield in turns: microseconds of a call, medians of nine loops. What is sent is written before each
   call, and what has come is read after it.

     mpicc -O2 bench/forms.c -o forms && nearfield run mpiexec -n 2 ./forms [largest number of bytes [unplanned]]

   unplanned: without the host's persistent form, which crashes in Intel MPI 2021.19. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { loops = 9 };
enum operation { allreduce, bcast, allgather, alltoall, neighbors, operations };
static const char* const names[] = {"allreduce", "bcast", "allgather", "alltoall", "neighbor_alltoall"};
enum form { blocking, overlapping, persistent };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static MPI_Comm comm; /* a ring */
static char *out, *in;

static void begin(enum operation what, enum form form, int n, MPI_Request* q) {
  const MPI_Datatype type = MPI_BYTE;
#define CALL(Name, Iname, ...)                               \
  (form == blocking      ? MPI_##Name(__VA_ARGS__, comm)     \
   : form == overlapping ? MPI_##Iname(__VA_ARGS__, comm, q) \
                         : MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, q))
  switch (what) {
    case allreduce: CALL(Allreduce, Iallreduce, out, in, n / 8, MPI_DOUBLE, MPI_SUM); break;
    case bcast: CALL(Bcast, Ibcast, out, n, type, 0); break;
    case allgather: CALL(Allgather, Iallgather, out, n, type, in, n, type); break;
    case alltoall: CALL(Alltoall, Ialltoall, out, n, type, in, n, type); break;
    default: CALL(Neighbor_alltoall, Ineighbor_alltoall, out, n, type, in, n, type);
  }
}

static double seconds(enum operation what, enum form form, int bytes, long* sum) {
  const int calls = bytes < 4096 ? 3000 : bytes < 65536 ? 1000 : (8 << 20) / bytes + 4;
  MPI_Request request;
  if (form == persistent) begin(what, form, bytes, &request);
  MPI_Barrier(comm);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    memset(out, 0, (size_t)bytes);
    if (form == persistent) MPI_Start(&request);
    else begin(what, form, bytes, &request);
    if (form != blocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
    const char* const got = what == bcast ? out : in;
    for (int k = 0; k < bytes; k += 64) *sum += got[k];
  }
  const double took = (MPI_Wtime() - start) / calls;
  if (form == persistent) MPI_Request_free(&request);
  return took;
}

int main(int argc, char** argv) {
  static const int sizes[] = {8, 1024, 4096, 16384, 65536, 1 << 20};
  static const char* const values[] = {"off", "on"};
  MPI_Init(&argc, &argv);
  const int largest = argc > 1 ? atoi(argv[1]) : 1 << 20, unplanned = argc > 2;
  int size, rank, periodic = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  MPI_Info hint[2];
  for (int by = 0; by < 2; ++by) {
    MPI_Info_create(&hint[by]);
    MPI_Info_set(hint[by], "nearfield", values[by]);
  }
  const size_t room = (size_t)largest * (size_t)(size < 2 ? 2 : size);
  out = malloc(room);
  in = malloc(room);
  memset(out, 1, room);
  memset(in, 1, room);
  long sum = 0;
  if (rank == 0)
    printf("%-18s %8s | %26s | %26s | %26s | %s\n", "microseconds", "bytes", "blocking: host, ours", "non-blocking",
           "persistent", "ours by our blocking form");
  for (int what = 0; what < operations; ++what)
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= largest; ++s) {
      double took[3][2][loops], median[3][2];
      for (int i = 0; i < 2 * loops; ++i) {
        MPI_Comm_set_info(comm, hint[i % 2]);
        for (int form = 0; form < 3; ++form)
          took[form][i % 2][i / 2] = unplanned && form == persistent && i % 2 == 0
                                         ? 0
                                         : seconds((enum operation)what, (enum form)form, sizes[s], &sum);
      }
      for (int form = 0; form < 3; ++form)
        for (int by = 0; by < 2; ++by) {
          qsort(took[form][by], loops, sizeof(double), compare);
          median[form][by] = took[form][by][loops / 2] * 1e6;
        }
      if (rank) continue;
      printf("%-18s %8d", names[what], sizes[s]);
      for (int form = 0; form < 3; ++form)
        printf(" | %9.3f %9.3f %5.2f", median[form][0], median[form][1], median[form][1] / median[form][0]);
      printf(" | %.2f %.2f\n", median[1][1] / median[0][1], median[2][1] / median[0][1]);
      fflush(stdout);
    }
  for (int by = 0; by < 2; ++by) MPI_Info_free(&hint[by]);
  MPI_Comm_free(&comm);
  free(out);
  free(in);
  MPI_Finalize();
  return sum == 42;
}
