/* Collectives of a vector of doubles, every other one, by the host and by Nearfield in turns: microseconds of a call,
   medians of nine loops. What is sent is written before each call, and what has come is read after it.

     mpicc -O2 bench/strided.c -o strided && nearfield run mpiexec -n 2 ./strided [bytes of payload] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { loops = 9 };
enum operation { bcast, allgather, alltoall, allreduce, operations };
static const char* const names[] = {"bcast", "allgather", "alltoall", "allreduce"};

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int size;
  MPI_Type_size(*type, &size);
  const double* const a = in;
  double* const b = inout;
  for (long i = 0; i < (long)*count * size / (long)sizeof(double); ++i) b[2 * i] += a[2 * i];
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  static const char* const values[] = {"off", "on"};
  MPI_Init(&argc, &argv);
  const int bytes = argc > 1 ? atoi(argv[1]) : 1 << 20, n = bytes / 8;
  int size, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Datatype vector;
  MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &vector);
  MPI_Type_create_resized(vector, 0, 16L * n, &vector);
  MPI_Type_commit(&vector);
  MPI_Op sum;
  MPI_Op_create(add, 1, &sum);
  MPI_Info hint[2];
  for (int by = 0; by < 2; ++by) {
    MPI_Info_create(&hint[by]);
    MPI_Info_set(hint[by], "nearfield", values[by]);
  }
  const size_t room = 2 * (size_t)n * (size_t)size;
  double *const out = calloc(room, 8), *const in = calloc(room, 8);
  double seen = 0;
  for (int what = 0; what < operations; ++what) {
    double took[2][loops];
    for (int i = 0; i < 2 * loops; ++i) {
      MPI_Comm_set_info(comm, hint[i % 2]);
      const int calls = (4 << 20) / bytes + 4;
      double inside = 0;
      for (int k = -2; k < calls; ++k) {
        for (size_t j = 0; j < 2 * (size_t)n * (what == alltoall ? (size_t)size : 1); ++j) out[j] = k;
        MPI_Barrier(comm);
        const double start = MPI_Wtime();
        switch (what) {
          case bcast: MPI_Bcast(rank ? in : out, 1, vector, 0, comm); break;
          case allgather: MPI_Allgather(out, 1, vector, in, 1, vector, comm); break;
          case alltoall: MPI_Alltoall(out, 1, vector, in, 1, vector, comm); break;
          default: MPI_Allreduce(out, in, 1, vector, sum, comm);
        }
        if (k >= 0) inside += MPI_Wtime() - start;
        for (size_t j = 0; j < room; j += 8) seen += in[j];
      }
      took[i % 2][i / 2] = inside / calls;
    }
    for (int by = 0; by < 2; ++by) qsort(took[by], loops, sizeof(double), compare);
    if (rank == 0)
      printf("%-10s host %9.1f, ours %9.1f: %.2f\n", names[what], took[0][loops / 2] * 1e6, took[1][loops / 2] * 1e6,
             took[1][loops / 2] / took[0][loops / 2]);
  }
  for (int by = 0; by < 2; ++by) MPI_Info_free(&hint[by]);
  MPI_Op_free(&sum);
  MPI_Type_free(&vector);
  MPI_Comm_free(&comm);
  free(out);
  free(in);
  MPI_Finalize();
  return seen == 0.123;
}
