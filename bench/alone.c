/* What small calls cost beside the host's own: collectives of communicators of one rank, MPI_Send_init and free, MPI_Alloc_mem and
   MPI_Free_mem, and a broadcast of an indexed type of 1,000 blocks. Least of blocks, nanoseconds a call: run it in turns
   with and without Nearfield.

     mpicc -O2 bench/alone.c -o alone && mpiexec -n 2 ./alone */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { blocks = 25, largest = 1 << 20, places = 1000 };
static char a[largest], b[largest];
static int zero[1], counts[1], rank;
static MPI_Comm self, single;
static MPI_Datatype indexed;

#define EACH(X) \
  X(barrier, MPI_Barrier(c)) \
  X(bcast, MPI_Bcast(a, n, MPI_BYTE, 0, c)) \
  X(gather, MPI_Gather(a, n, MPI_BYTE, b, n, MPI_BYTE, 0, c)) \
  X(scatter, MPI_Scatter(a, n, MPI_BYTE, b, n, MPI_BYTE, 0, c)) \
  X(allgather, MPI_Allgather(a, n, MPI_BYTE, b, n, MPI_BYTE, c)) \
  X(alltoall, MPI_Alltoall(a, n, MPI_BYTE, b, n, MPI_BYTE, c)) \
  X(reduce, MPI_Reduce(a, b, n / 4, MPI_INT, MPI_SUM, 0, c)) \
  X(allreduce, MPI_Allreduce(a, b, n / 4, MPI_INT, MPI_SUM, c)) \
  X(reduce_scatter_block, MPI_Reduce_scatter_block(a, b, n / 4, MPI_INT, MPI_SUM, c)) \
  X(reduce_scatter, (counts[0] = n / 4, MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, c))) \
  X(scan, MPI_Scan(a, b, n / 4, MPI_INT, MPI_SUM, c)) \
  X(gatherv, (counts[0] = n, MPI_Gatherv(a, n, MPI_BYTE, b, counts, zero, MPI_BYTE, 0, c))) \
  X(scatterv, (counts[0] = n, MPI_Scatterv(a, counts, zero, MPI_BYTE, b, n, MPI_BYTE, 0, c))) \
  X(allgatherv, (counts[0] = n, MPI_Allgatherv(a, n, MPI_BYTE, b, counts, zero, MPI_BYTE, c))) \
  X(alltoallv, (counts[0] = n, MPI_Alltoallv(a, counts, zero, MPI_BYTE, b, counts, zero, MPI_BYTE, c))) \
  X(allreduce_in_place, MPI_Allreduce(MPI_IN_PLACE, b, n / 4, MPI_INT, MPI_MAX, c)) \
  X(ibcast, (MPI_Ibcast(a, n, MPI_BYTE, 0, c, &r), MPI_Wait(&r, MPI_STATUS_IGNORE))) \
  X(iallreduce, (MPI_Iallreduce(a, b, n / 4, MPI_INT, MPI_SUM, c, &r), MPI_Wait(&r, MPI_STATUS_IGNORE))) \
  X(ibarrier, (MPI_Ibarrier(c, &r), MPI_Wait(&r, MPI_STATUS_IGNORE))) \
  X(sendrecv_self, MPI_Sendrecv(a, n, MPI_BYTE, 0, 0, b, n, MPI_BYTE, 0, 0, c, MPI_STATUS_IGNORE))

#define OTHERS(X) \
  X(send_init, (MPI_Send_init(a, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r), MPI_Request_free(&r))) \
  X(recv_init, (MPI_Recv_init(a, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r), MPI_Request_free(&r))) \
  X(ssend_init, (MPI_Ssend_init(a, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r), MPI_Request_free(&r))) \
  X(bsend_init, (MPI_Bsend_init(a, n, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r), MPI_Request_free(&r))) \
  X(alloc_mem, (MPI_Alloc_mem(n, MPI_INFO_NULL, &p), MPI_Free_mem(p)))

#define TOGETHER(X) \
  X(bcast_indexed, MPI_Bcast(a, 1, indexed, 0, MPI_COMM_WORLD)) \
  X(bcast_dense, MPI_Bcast(a, places, MPI_DOUBLE, 0, MPI_COMM_WORLD)) \
  X(allreduce, MPI_Allreduce(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD))

#define DEFINE(name, call) \
  static void do_##name(int n, int calls, MPI_Comm c) { \
    MPI_Request r; \
    void* p; \
    (void)r, (void)p, (void)c, (void)n; \
    for (int i = 0; i < calls; ++i) call; \
  }
#define DEFINE_TOGETHER(name, call) \
  static void with_##name(int n, int calls, MPI_Comm c) { \
    (void)n, (void)c; \
    for (int i = 0; i < calls; ++i) call; \
  }
EACH(DEFINE) OTHERS(DEFINE) TOGETHER(DEFINE_TOGETHER)

static void measure(const char* name, void (*body)(int, int, MPI_Comm), int n, MPI_Comm c, int together) {
  double least = 1e9;
  int calls = n < 100000 ? 500 : 50;
  if (n >= 10000000) calls = 5;
  body(n, 50, c);
  for (int k = 0; k < blocks; ++k) {
    if (together) MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    body(n, calls, c);
    double took = (MPI_Wtime() - begin) * 1e9 / calls;
    if (took < least) least = took;
  }
  if (rank == 0) printf("%s %s%s %d %.0f\n", together ? "together" : c == self ? "self" : c == single ? "single" : "own", name, "", n, least);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  self = MPI_COMM_SELF;
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &single);
  static int lengths[places], displacements[places];
  for (int i = 0; i < places; ++i) lengths[i] = 1 + i % 2, displacements[i] = 4 * i;
  MPI_Type_indexed(places, lengths, displacements, MPI_DOUBLE, &indexed);
  MPI_Type_commit(&indexed);
  static const int sizes[] = {8, 4096, 262144};
  for (int s = 0; s < 3; ++s) {
#define RUN(name, call) \
  measure(#name, do_##name, sizes[s], self, 0); \
  measure(#name, do_##name, sizes[s], single, 0);
    EACH(RUN)
  }
#define RUN_OTHER(name, call) measure(#name, do_##name, 8, MPI_COMM_NULL, 0);
  OTHERS(RUN_OTHER)
  static const int lengths_of_memory[] = {4096, 65536, 131072, 1 << 20, 16 << 20};
  for (int s = 0; s < 5; ++s) measure("alloc_mem", do_alloc_mem, lengths_of_memory[s], MPI_COMM_NULL, 0);
  MPI_Barrier(MPI_COMM_WORLD);
#define RUN_TOGETHER(name, call) measure(#name, with_##name, 8, MPI_COMM_WORLD, 1);
  TOGETHER(RUN_TOGETHER)
  MPI_Type_free(&indexed);
  MPI_Comm_free(&single);
  MPI_Finalize();
  return 0;
}
