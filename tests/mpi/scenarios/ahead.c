/* Who only sends in a rooted collective may be some calls ahead of the others, as every plain host lets it. */
#include "scenarios.h"

enum { most = 4000 };
static int counts[64], places[64], word;
static char own[most], all[64 * most];

static void gatherv(int bytes, int nth) {
  memset(own, rank + nth, (size_t)bytes);
  MPI_Gatherv(own, bytes, MPI_CHAR, all, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; ++r)
    CHECK(all[places[r]] == (char)(r + nth) && all[places[r] + bytes - 1] == (char)(r + nth), "call %d", nth);
}

static void scatterv(int bytes, int nth) {
  for (int r = 0; rank == 0 && r < size; ++r) memset(all + places[r], r + nth, (size_t)bytes);
  MPI_Scatterv(all, counts, places, MPI_CHAR, own, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK(own[0] == (char)(rank + nth) && own[bytes - 1] == (char)(rank + nth), "call %d", nth);
}

/* Those that send tell the others when they have left the calls, and these begin them then. */
static void run(int gathers, int bytes, int calls) {
  for (int r = 0; r < size; ++r) counts[r] = bytes, places[r] = r * bytes;
  const int ahead = gathers ? rank != 0 : rank == 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 1; r < size; ++r)
    if (!ahead && (gathers || rank == r))
      MPI_Recv(&word, 1, MPI_INT, gathers ? r : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < calls; ++i) (gathers ? gatherv : scatterv)(bytes, i);
  for (int r = 1; r < size; ++r)
    if (ahead && (!gathers || rank == r)) MPI_Send(&word, 1, MPI_INT, gathers ? 0 : r, 0, MPI_COMM_WORLD);
}

SCENARIO(ahead) {
  for (int gathers = 0; gathers < 2; ++gathers) {
    run(gathers, 64, 100);
    run(gathers, most, 1);
    run(gathers, most, 20);
  }
}
