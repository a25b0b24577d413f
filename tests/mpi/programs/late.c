/* The last rank comes late to one call after the other. How much of a CPU rank 0 uses meanwhile: a line for each call,
   "NAME SECONDS SHARE".

     late MILLISECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rank, size, late;
static const char* name;
static double used, began;

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void begin(const char* what) {
  name = what;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) usleep((useconds_t)late * 1000);
  used = seconds(CLOCK_PROCESS_CPUTIME_ID);
  began = seconds(CLOCK_MONOTONIC);
}

static void end(void) {
  const double took = seconds(CLOCK_MONOTONIC) - began;
  if (rank == 0) printf("%s %.3f %.4f\n", name, took, (seconds(CLOCK_PROCESS_CPUTIME_ID) - used) / took);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  late = argc > 1 ? atoi(argv[1]) : 500;
  int one = 1, all = 0, period = 1, dims = size;
  MPI_Comm comm, other;
  MPI_Win window;
  MPI_Request request;
  void* base;

  begin("Barrier");
  MPI_Barrier(MPI_COMM_WORLD);
  end();
  begin("Bcast");
  MPI_Bcast(&one, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  end();
  begin("Recv");
  if (rank == 0) MPI_Recv(&all, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == size - 1) MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  end();
  begin("Iallreduce");
  MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end();
  begin("Comm_dup");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  end();
  begin("first-Allreduce");
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  end();
  begin("Comm_split");
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
  end();
  begin("Cart_create");
  MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &period, 0, &other);
  end();
  begin("Allreduce_init");
  MPI_Allreduce_init(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  end();
  begin("Start");
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end();
  MPI_Request_free(&request);
  begin("Win_allocate");
  MPI_Win_allocate(1 << 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  end();
  begin("Win_fence");
  MPI_Win_fence(0, window);
  end();
  begin("Win_free");
  MPI_Win_free(&window);
  end();
  begin("Finalize");
  MPI_Finalize();
  end();
  return 0;
}
