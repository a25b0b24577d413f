/* A rank's block of the field: which cells it has, who has those around it, and how they are updated.

   A block lies in memory row by row, with a line of halo cells on each side. Two fields take turns: a sweep reads one
   and writes the other. */
#ifndef STENCIL_BLOCK_H
#define STENCIL_BLOCK_H

#include <mpi.h>
#include <stddef.h>

enum side { NORTH, SOUTH, WEST, EAST, SIDES };

static inline int opposite(int side) { return side ^ 1; }

/* The cells of one rank, out of all. */
struct part {
  int first_row, first_column, rows, columns;
};

/* Cells along a side. */
struct line {
  const double* first;
  ptrdiff_t step;
};

struct block {
  MPI_Comm grid;
  int all_rows, all_columns;
  int neighbour[SIDES];       /* a rank of `grid`; MPI_PROC_NULL where the field ends */
  struct part own, of[SIDES]; /* of[side] is the neighbour's, where there is one */
  MPI_Datatype lines[SIDES];  /* the cells along a side of this block: columns have a stride */
  double* fields[2];          /* a form of communication allocates them */
  /* What a sweep reads from across each side: the halo, or the neighbour's own cells where a form can reach them. */
  struct line beyond[2][SIDES];
};

/* The grid of ranks and this rank's place in it, as even as can be; `dims` are the grid's sides, 0 for any.
   Returns 0 where the grid would not have a row and a column of cells for each rank, or not all ranks. */
int make_block(struct block* block, int rows, int columns, int dims[2]);
void free_block(struct block* block);

/* Cells of a field with its halo. */
size_t cells_in(const struct part* part);

/* Where cell (row, column) of a part lies in its field; -1 and `rows` or `columns` are the halo. */
ptrdiff_t place(const struct part* part, int row, int column);

/* Where a part's own line along a side begins, and the halo beyond it, and from one cell of either to the next. */
ptrdiff_t inner(const struct part* part, int side);
ptrdiff_t outer(const struct part* part, int side);
ptrdiff_t step_along(const struct part* part, int side);

/* The type of a part's lines along a side. The caller frees it. */
MPI_Datatype line_type(const struct part* part, int side);

/* Sets both fields, halo included, once they are allocated: to 1, which the rim keeps, plus a wave. `beyond` is then
   this block's halo. */
void fill(struct block* block);

/* The largest difference between a field and what the wave has become after so many sweeps. */
double error_of(const struct block* block, const double* field, int sweeps);

/* One sweep from field `now` into the other one: the cells that need none of a neighbour's, and all others. */
void update_inside(const struct block* block, int now);
void update_edges(const struct block* block, int now);

#endif
