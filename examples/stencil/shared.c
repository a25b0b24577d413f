/* No halos between ranks of a node: they have their fields in one shared window, and read each other's cells where they
   lie.

   Before it reads, a rank has to know that its neighbour has written, and before it overwrites, that the neighbour has
   read. One handshake per sweep is enough for both, since two fields take turns:

       rank                                       its neighbour
       sweep n - 1 writes field A, reads B        sweep n - 1 writes field A, reads B
       Win_sync: stores before, loads after       the same
       empty message  -------------------------------->
              <--------------------------------   empty message
       Win_sync                                   Win_sync
       sweep n reads A on both sides; writes B, which the neighbour has read

   The inside of a block is updated before the messages have come: no neighbour reads that. Empty messages wait the way
   the MPI library waits, also where ranks share a CPU; flags in the window would have to be polled.

   Neighbours on other nodes get messages with cells in them. */
#include <stdlib.h>

#include "forms.h"

struct sharing {
  MPI_Comm node;
  MPI_Win window;
  int count[SIDES]; /* lines that a message carries: none where the neighbour reads them itself */
  MPI_Request requests[requests_of_exchange];
};

/* The neighbour's rank in `node`, MPI_UNDEFINED where it is not there, MPI_PROC_NULL where there is none. */
static int rank_on_node(const struct block* block, int side, MPI_Comm node) {
  MPI_Group all, here;
  int rank;
  MPI_Comm_group(block->grid, &all);
  MPI_Comm_group(node, &here);
  MPI_Group_translate_ranks(all, 1, &block->neighbour[side], here, &rank);
  MPI_Group_free(&all);
  MPI_Group_free(&here);
  return rank;
}

static void* create(struct block* block) {
  struct sharing* sharing = malloc(sizeof *sharing);
  size_t cells = cells_in(&block->own);
  MPI_Comm_split_type(block->grid, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &sharing->node);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true"); /* on pages of its own, each rank's part can lie near it */
  MPI_Win_allocate_shared((MPI_Aint)(2 * cells * sizeof(double)), sizeof(double), info, sharing->node,
                          &block->fields[0], &sharing->window);
  MPI_Info_free(&info);
  block->fields[1] = block->fields[0] + cells;
  fill(block);

  for (int side = 0; side < SIDES; ++side) {
    const struct part* theirs = &block->of[side];
    int rank = rank_on_node(block, side, sharing->node);
    sharing->count[side] = rank == MPI_UNDEFINED;
    if (rank == MPI_UNDEFINED || rank == MPI_PROC_NULL) continue;
    MPI_Aint bytes;
    int unit;
    double* field;
    MPI_Win_shared_query(sharing->window, rank, &bytes, &unit, &field);
    for (int i = 0; i < 2; ++i) {
      const double* first = field + i * cells_in(theirs) + inner(theirs, opposite(side));
      block->beyond[i][side] = (struct line){first, step_along(theirs, side)};
    }
  }
  MPI_Win_lock_all(MPI_MODE_NOCHECK, sharing->window); /* MPI_Win_sync needs an epoch; nobody locks otherwise */
  return sharing;
}

static void start(void* self, const struct block* block, int now) {
  struct sharing* sharing = self;
  MPI_Win_sync(sharing->window);
  start_exchange(block, sharing->count, now, sharing->requests);
  ++traffic.calls;
}

static void finish(void* self, const struct block* block, int now) {
  struct sharing* sharing = self;
  (void)block, (void)now;
  MPI_Waitall(requests_of_exchange, sharing->requests, MPI_STATUSES_IGNORE);
  MPI_Win_sync(sharing->window);
  traffic.calls += 2;
}

static void destroy(void* self, struct block* block) {
  struct sharing* sharing = self;
  (void)block;
  MPI_Win_unlock_all(sharing->window);
  MPI_Win_free(&sharing->window);
  MPI_Comm_free(&sharing->node);
  free(sharing);
}

const struct form shared = {"shared", create, start, finish, destroy};
