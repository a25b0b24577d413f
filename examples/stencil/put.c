/* Halos by one-sided MPI_Put: each rank writes its lines into its neighbours' halos.

   Post, start, complete and wait synchronise neighbours only, and tell a rank that its halo is complete. A fence would
   make every rank wait for all others in every sweep; with locks and flushes the neighbour would not know that anything
   has come, and a program would have to add messages or flags of its own.

   Each field has a window of its own: while neighbours put into one, the sweep writes to the other. The standard's
   separate memory model forbids stores to a window that others put into, even to other places of it. */
#include <stdlib.h>

#include "forms.h"

struct windows {
  MPI_Win of[2]; /* a field each */
  MPI_Group neighbours;
  MPI_Datatype theirs[SIDES]; /* a neighbour's halo, whose rows may be longer than this block's */
};

static void* create(struct block* block) {
  struct windows* windows = malloc(sizeof *windows);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  for (int i = 0; i < 2; ++i)
    MPI_Win_allocate((MPI_Aint)(cells_in(&block->own) * sizeof(double)), sizeof(double), info, block->grid,
                     &block->fields[i], &windows->of[i]);
  MPI_Info_free(&info);
  fill(block);

  int ranks[SIDES], count = 0;
  for (int side = 0; side < SIDES; ++side) {
    windows->theirs[side] = line_type(&block->of[side], opposite(side));
    if (block->neighbour[side] != MPI_PROC_NULL) ranks[count++] = block->neighbour[side];
  }
  MPI_Group everybody;
  MPI_Comm_group(block->grid, &everybody);
  MPI_Group_incl(everybody, count, ranks, &windows->neighbours);
  MPI_Group_free(&everybody);
  return windows;
}

static void start(void* self, const struct block* block, int now) {
  struct windows* windows = self;
  MPI_Win window = windows->of[now];
  MPI_Win_post(windows->neighbours, 0, window);
  MPI_Win_start(windows->neighbours, 0, window);
  for (int side = 0; side < SIDES; ++side)
    MPI_Put(block->fields[now] + inner(&block->own, side), 1, block->lines[side], block->neighbour[side],
            outer(&block->of[side], opposite(side)), 1, windows->theirs[side], window);
  for (int side = 0; side < SIDES; ++side) count_lines(block, side, 1);
  traffic.calls += 2 + SIDES;
}

static void finish(void* self, const struct block* block, int now) {
  struct windows* windows = self;
  (void)block;
  MPI_Win_complete(windows->of[now]); /* what this rank puts has left */
  MPI_Win_wait(windows->of[now]);     /* what the neighbours put has come */
  traffic.calls += 2;
}

static void destroy(void* self, struct block* block) {
  struct windows* windows = self;
  (void)block;
  for (int i = 0; i < 2; ++i) MPI_Win_free(&windows->of[i]);
  for (int side = 0; side < SIDES; ++side) MPI_Type_free(&windows->theirs[side]);
  MPI_Group_free(&windows->neighbours);
  free(windows);
}

const struct form put = {"put", create, start, finish, destroy};
