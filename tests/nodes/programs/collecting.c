/* collecting SECONDS: all nine collectives again and again, short and long; the first rank says when that begins, what the
   longest pause between two rounds was, and how many there were. */
#include "nine.inc"

int main(int argc, char** argv) {
  static const int counts[] = {1, 300, 20000};
  int rank, go = 1, round = 0;
  double longest = 0;
  const double seconds = atof(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  nine_collectives(MPI_COMM_WORLD, 1, 0);
  if (rank == 0) printf("begun\n"), fflush(stdout);
  const double begin = MPI_Wtime();
  for (double last = begin; go; ++round) {
    nine_collectives(MPI_COMM_WORLD, counts[round % 3], round);
    const double now = MPI_Wtime();
    if (now - last > longest) longest = now - last;
    last = now;
    go = now - begin < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("longest pause: %.3f s of %d rounds\n", longest, round);
  MPI_Finalize();
}
