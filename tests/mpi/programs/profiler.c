/* A profiling tool: wraps MPI_Allreduce and calls PMPI_Allreduce. */
#include <mpi.h>
#include <stdio.h>

int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static int calls;
  if (!calls++) fprintf(stderr, "profiled\n");
  return PMPI_Allreduce(send, recv, count, type, op, comm);
}
