/* Opens one plugin before MPI_Init and another one after it; compiled with -DBYTES=N, such a plugin, which takes N bytes of what
   the C library keeps for variables of threads of libraries that are loaded late. */
#ifdef BYTES
__attribute__((tls_model("initial-exec"))) __thread char room[BYTES];
char* room_of_thread(void) { return room; }
#else

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int open_plugin(const char* path) {
  void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  char* (*room)(void) = 0;
  if (plugin) *(void**)&room = dlsym(plugin, "room_of_thread");
  if (!room) return fprintf(stderr, "%s\n", dlerror()), 0;
  *room() = 1;
  return 1;
}

int main(int argc, char** argv) {
  int good = open_plugin(argv[1]), rank, size, one = 1, sum = 0, all = 0;
  MPI_Init(&argc, &argv);
  good &= open_plugin(argv[2]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && all && sum == size) puts("good");
  return MPI_Finalize();
}

#endif
