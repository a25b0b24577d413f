/* Two ranks send a number to and fro; the arguments say how each of them finds MPI_Send, MPI_Recv and MPI_Allreduce:
   linked, or in the host's library by dlsym (asked for "before" or "after" MPI_Init), or in a plugin (this file compiled
   with -DPLUGIN), opened "before" or "after" MPI_Init as one that prefers its own libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

struct functions {
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  int (*recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
  int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
};

#ifdef PLUGIN

void linked(struct functions* functions) {
  *functions = (struct functions){MPI_Send, MPI_Recv, MPI_Allreduce};
}
static int send(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  return MPI_Send(b, n, t, to, tag, c);
}
static int receive(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s) {
  return MPI_Recv(b, n, t, from, tag, c, s);
}
static int allreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return MPI_Allreduce(s, r, n, t, op, c);
}
void called(struct functions* functions) { *functions = (struct functions){send, receive, allreduce}; }

#else

static struct functions functions = {MPI_Send, MPI_Recv, MPI_Allreduce};

static int look_up(const char* how, const char* file) {
  void (*fill)(struct functions*);
  int mode = strstr(how, "lazy") ? RTLD_LAZY : RTLD_NOW;
  if (strstr(how, "plugin")) mode |= RTLD_DEEPBIND;
  void* library = dlopen(file, mode);
  if (!library) return fprintf(stderr, "%s\n", dlerror());
  if (strstr(how, "plugin")) {
    *(void**)&fill = dlsym(library, strstr(how, "address") ? "linked" : "called");
    fill(&functions);
  } else {
    *(void**)&functions.send = dlsym(library, "MPI_Send");
    *(void**)&functions.recv = dlsym(library, strstr(how, "pmpi") ? "PMPI_Recv" : "MPI_Recv");
    *(void**)&functions.allreduce = dlsym(library, "MPI_Allreduce");
  }
  return 0;
}

int main(int argc, char** argv) {
  int rank, good = 1;
  const char* file = argc > 1 ? argv[1] : "";
  const char* how[2] = {argc > 2 ? argv[2] : "linked", argc > 3 ? argv[3] : "linked"};
  /* Which rank this is only MPI knows, so before it both look up what either asks for. */
  for (int i = 0; i < 2; ++i)
    if (strstr(how[i], "before") && look_up(how[i], file)) return 1;
  const struct functions early = functions;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  functions = (struct functions){MPI_Send, MPI_Recv, MPI_Allreduce};
  if (strstr(how[rank], "before")) functions = early;
  if (strstr(how[rank], "after") && look_up(how[rank], file)) return 1;
  for (int i = 0; i < 100; ++i) {
    int number = i, sum = 0;
    if (rank == 0) functions.send(&number, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    functions.recv(&number, 1, MPI_INT, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) functions.send(&number, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    functions.allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    good &= number == i && sum == 2 * i;
  }
  if (rank == 0 && good) printf("good\n");
  MPI_Finalize();
  return 0;
}

#endif
