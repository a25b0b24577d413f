/* Calls MPI as MPItrampoline does: through a table of functions of a wrapper (this file compiled with -DPLUGIN), which
   alone is linked with the MPI. The second argument says how the wrapper is opened: "deep", "global" or "apart", which
   is a namespace of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct functions {
  int (*init)(int*, char***), (*finalize)(void);
  int (*rank)(uintptr_t, int*), (*size)(uintptr_t, int*), (*sum)(const int*, int*, uintptr_t);
  uintptr_t world;
};

#ifdef PLUGIN
#include <mpi.h>

static int rank(uintptr_t comm, int* rank) { return MPI_Comm_rank((MPI_Comm)comm, rank); }
static int size(uintptr_t comm, int* size) { return MPI_Comm_size((MPI_Comm)comm, size); }
static int sum(const int* from, int* to, uintptr_t comm) {
  return MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, (MPI_Comm)comm);
}
struct functions wrapped = {MPI_Init, MPI_Finalize, rank, size, sum, 0};
__attribute__((constructor)) static void fill(void) { wrapped.world = (uintptr_t)MPI_COMM_WORLD; }

#else

int main(int argc, char** argv) {
  int rank, size, good = 1;
  const char* how = argv[2];
  void* wrapper = !strcmp(how, "deep")     ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND)
                  : !strcmp(how, "global") ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)
                                           : dlmopen(LM_ID_NEWLM, argv[1], RTLD_LAZY);
  if (!wrapper) return fprintf(stderr, "%s\n", dlerror());
  const struct functions* mpi = dlsym(wrapper, "wrapped");
  mpi->init(&argc, &argv);
  mpi->rank(mpi->world, &rank);
  mpi->size(mpi->world, &size);
  for (int i = 0; i < 100; ++i) {
    int sum = 0;
    mpi->sum(&i, &sum, mpi->world);
    good &= sum == i * size;
  }
  if (rank == 0 && good) puts("good");
  return mpi->finalize();
}

#endif
