/* Opens another library privately, then a plugin (this file compiled with -DPLUGIN) that is linked with an MPI; with
   a third argument as one that prefers its own libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef PLUGIN
#include <mpi.h>

int run(int* argc, char*** argv) {
  int rank, size, one = 1, sum = 0;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && sum == size) puts("good");
  return MPI_Finalize();
}

#else

int main(int argc, char** argv) {
  int (*run)(int*, char***);
  void* other = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* plugin = other ? dlopen(argv[2], RTLD_NOW | (argc > 3 ? RTLD_DEEPBIND : 0)) : NULL;
  if (!plugin) return fprintf(stderr, "%s\n", dlerror());
  *(void**)&run = dlsym(plugin, "run");
  return run(&argc, &argv);
}

#endif
