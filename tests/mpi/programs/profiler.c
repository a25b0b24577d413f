/* A profiling tool: counts some calls, passes them on to PMPI (with -DNEXT: to what comes next), and says at the end
   what rank 0 called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#ifdef NEXT
#define PMPI_Send ((__typeof__(&MPI_Send))dlsym(RTLD_NEXT, "MPI_Send"))
#define PMPI_Allreduce ((__typeof__(&MPI_Allreduce))dlsym(RTLD_NEXT, "MPI_Allreduce"))
#endif

#pragma weak PMPI_Comm_rank /* absent where the library is loaded privately */

static int inits, sends, allreduces;

int MPI_Init(int* argc, char*** argv) {
  ++inits;
  return PMPI_Init(argc, argv);
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(data, count, type, dest, tag, comm);
}

int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Finalize(void) {
  int rank = 0;
  if (PMPI_Comm_rank) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fprintf(stderr, "profiled %d %d %d\n", inits, sends, allreduces);
  return PMPI_Finalize();
}
