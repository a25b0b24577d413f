/* Messages to so many ranks behind each one (argument 1); with argument 2 above 0 also long ones, and so many calls of a
   collective, on arrays that no peer reaches; argument 3: bytes of a window; argument 4: further communicators. What that takes of memory the statistics tell. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rounds = 20, message = 64, longest = 100000 };
static double out[longest], in[longest];

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* const own = malloc(1 << 20); /* in the shared heap */
  memset(own, rank, 1 << 20);
  const int partners = argc > 1 ? atoi(argv[1]) : 0, collectives = argc > 2 ? atoi(argv[2]) : 0;
  for (int i = 0; i < rounds; ++i)
    for (int away = 1; away <= partners && away < size; ++away) {
      const int to = (rank + away) % size, from = (rank + size - away) % size, last = i == rounds - 1;
      const int bytes = last && collectives > 0 ? (int)sizeof out : message;
      MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  const int communicators = argc > 4 ? atoi(argv[4]) : 0;
  for (int c = 0; c <= communicators; ++c) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (c > 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* and never freed */
    for (int i = 0; i < collectives; ++i) {
      for (int k = 0; k < longest; ++k) out[k] = rank;
      MPI_Allreduce(out, in, longest, MPI_DOUBLE, MPI_SUM, comm);
      if (in[longest - 1] != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (argc > 3 && atol(argv[3])) {
    MPI_Win window;
    void* memory;
    MPI_Win_allocate(atol(argv[3]), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  }
  if (rank == 0 && own[size] == 0) puts("good");
  free(own);
  MPI_Finalize();
  return 0;
}
