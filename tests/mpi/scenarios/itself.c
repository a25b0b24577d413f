/* Of the runner itself (tests/mpi/test_running.py): what is good, wrong on one rank, and ends the job. */
#include "scenarios.h"

SCENARIO(itself_good) {
  if (rank == 0) printf("arguments:");
  for (int i = 1; rank == 0 && i < argc; ++i) printf(" %s", argv[i]);
  if (rank == 0) printf("\n");
  CHECK(1);
}
SCENARIO(itself_wrong) { CHECK(rank != 1, "rank %d of %d", rank, size); }
SCENARIO(itself_required) { REQUIRE(rank != 1); }
SCENARIO(itself_crashes) {
  if (rank == 1) abort();
  MPI_Barrier(MPI_COMM_WORLD);
}
