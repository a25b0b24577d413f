/* Halos by messages: each neighbour gets the line that it needs. */
#include <stdlib.h>

#include "forms.h"

struct traffic traffic;

void count_lines(const struct block* block, int side, int count) {
  int cells = side == NORTH || side == SOUTH ? block->own.columns : block->own.rows;
  if (block->neighbour[side] != MPI_PROC_NULL) traffic.bytes += (long long)sizeof(double) * cells * count;
}

static const int whole_lines[SIDES] = {1, 1, 1, 1};

void start_exchange(const struct block* block, const int count[SIDES], int now,
                    MPI_Request requests[requests_of_exchange]) {
  const struct part* own = &block->own;
  double* field = block->fields[now];
  for (int side = 0; side < SIDES; ++side)
    MPI_Irecv(field + outer(own, side), count[side], block->lines[side], block->neighbour[side], opposite(side),
              block->grid, &requests[side]);
  for (int side = 0; side < SIDES; ++side) /* the tag is the way it goes */
    MPI_Isend(field + inner(own, side), count[side], block->lines[side], block->neighbour[side], side, block->grid,
              &requests[SIDES + side]);
  for (int side = 0; side < SIDES; ++side) count_lines(block, side, count[side]);
  traffic.calls += 2 * SIDES;
}

static void* create(struct block* block) {
  for (int i = 0; i < 2; ++i)
    MPI_Alloc_mem((MPI_Aint)(cells_in(&block->own) * sizeof(double)), MPI_INFO_NULL, &block->fields[i]);
  fill(block);
  return calloc(requests_of_exchange, sizeof(MPI_Request));
}

static void start(void* self, const struct block* block, int now) { start_exchange(block, whole_lines, now, self); }

static void finish(void* self, const struct block* block, int now) {
  (void)block, (void)now;
  MPI_Waitall(requests_of_exchange, self, MPI_STATUSES_IGNORE);
  ++traffic.calls;
}

static void destroy(void* self, struct block* block) {
  for (int i = 0; i < 2; ++i) MPI_Free_mem(block->fields[i]);
  free(self);
}

const struct form messages = {"messages", create, start, finish, destroy};
