#include "block.h"

#include <math.h>

static const double pi = 3.14159265358979323846;
static const double rate = 0.2; /* of diffusion, times the time step; the scheme is stable up to 0.25 */
enum { waves_down = 1, waves_across = 2 };

static struct part part_at(const struct block* block, const int dims[2], int row, int column) {
  struct part part;
  part.first_row = (int)((long long)block->all_rows * row / dims[0]);
  part.first_column = (int)((long long)block->all_columns * column / dims[1]);
  part.rows = (int)((long long)block->all_rows * (row + 1) / dims[0]) - part.first_row;
  part.columns = (int)((long long)block->all_columns * (column + 1) / dims[1]) - part.first_column;
  return part;
}

int make_block(struct block* block, int rows, int columns, int dims[2]) {
  int size, rank, at[2];
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int fixed = (dims[0] ? dims[0] : 1) * (dims[1] ? dims[1] : 1);
  if (size % fixed || (dims[0] && dims[1] && fixed != size)) return 0;
  MPI_Dims_create(size, 2, dims);
  if (rows < dims[0] || columns < dims[1]) return 0;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){0, 0}, 1, &block->grid);
  MPI_Comm_rank(block->grid, &rank);
  MPI_Cart_coords(block->grid, rank, 2, at);
  MPI_Cart_shift(block->grid, 0, 1, &block->neighbour[NORTH], &block->neighbour[SOUTH]);
  MPI_Cart_shift(block->grid, 1, 1, &block->neighbour[WEST], &block->neighbour[EAST]);
  block->all_rows = rows;
  block->all_columns = columns;
  block->own = part_at(block, dims, at[0], at[1]);
  block->of[NORTH] = part_at(block, dims, at[0] - 1, at[1]);
  block->of[SOUTH] = part_at(block, dims, at[0] + 1, at[1]);
  block->of[WEST] = part_at(block, dims, at[0], at[1] - 1);
  block->of[EAST] = part_at(block, dims, at[0], at[1] + 1);
  for (int side = 0; side < SIDES; ++side) block->lines[side] = line_type(&block->own, side);
  return 1;
}

void free_block(struct block* block) {
  for (int side = 0; side < SIDES; ++side) MPI_Type_free(&block->lines[side]);
  MPI_Comm_free(&block->grid);
}

static ptrdiff_t pitch(const struct part* part) { return part->columns + 2; }

size_t cells_in(const struct part* part) { return (size_t)(part->rows + 2) * pitch(part); }

ptrdiff_t place(const struct part* part, int row, int column) { return (row + 1) * pitch(part) + column + 1; }

ptrdiff_t inner(const struct part* part, int side) {
  return place(part, side == SOUTH ? part->rows - 1 : 0, side == EAST ? part->columns - 1 : 0);
}

ptrdiff_t outer(const struct part* part, int side) {
  ptrdiff_t out = side == NORTH || side == SOUTH ? pitch(part) : 1;
  return inner(part, side) + (side == NORTH || side == WEST ? -out : out);
}

ptrdiff_t step_along(const struct part* part, int side) { return side == NORTH || side == SOUTH ? 1 : pitch(part); }

MPI_Datatype line_type(const struct part* part, int side) {
  MPI_Datatype type;
  int length = side == NORTH || side == SOUTH ? part->columns : part->rows;
  MPI_Type_vector(length, 1, (int)step_along(part, side), MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Angles of the wave from one row or column to the next. */
static double angle_down(const struct block* block) { return pi * waves_down / (block->all_rows + 1); }
static double angle_across(const struct block* block) { return pi * waves_across / (block->all_columns + 1); }

static double wave(const struct block* block, int row, int column) {
  return sin(angle_down(block) * (block->own.first_row + row + 1)) *
         sin(angle_across(block) * (block->own.first_column + column + 1));
}

void fill(struct block* block) {
  const struct part* own = &block->own;
  for (int i = 0; i < 2; ++i) {
    for (size_t cell = 0; cell < cells_in(own); ++cell) block->fields[i][cell] = 1;
    for (int side = 0; side < SIDES; ++side)
      block->beyond[i][side] = (struct line){block->fields[i] + outer(own, side), step_along(own, side)};
  }
  for (int row = 0; row < own->rows; ++row)
    for (int column = 0; column < own->columns; ++column)
      block->fields[0][place(own, row, column)] += wave(block, row, column);
}

double error_of(const struct block* block, const double* field, int sweeps) {
  /* The wave is an eigenvector of the sweep: it keeps its shape and shrinks by this factor. */
  double factor = 1 - rate * (4 - 2 * cos(angle_down(block)) - 2 * cos(angle_across(block)));
  double left = pow(factor, sweeps), largest = 0;
  for (int row = 0; row < block->own.rows; ++row)
    for (int column = 0; column < block->own.columns; ++column) {
      double expected = 1 + left * wave(block, row, column);
      largest = fmax(largest, fabs(field[place(&block->own, row, column)] - expected));
    }
  return largest;
}

/* The one place that says in which order cells are added: every way of getting at them gives the same bits. */
static inline double updated(double here, double north, double south, double west, double east) {
  return here + rate * ((north + south) + (west + east) - 4 * here);
}

/* Cells first to end - 1 of a row, whose neighbours to the west and to the east lie beside them. */
static void update_row(double* restrict out, const double* north, const double* here, const double* south, int first,
                       int end) {
  for (int i = first; i < end; ++i) out[i] = updated(here[i], north[i], south[i], here[i - 1], here[i + 1]);
}

void update_inside(const struct block* block, int now) {
  const struct part* own = &block->own;
  for (int row = 1; row < own->rows - 1; ++row) {
    const double* here = block->fields[now] + place(own, row, 0);
    double* out = block->fields[!now] + place(own, row, 0);
    update_row(out, here - pitch(own), here, here + pitch(own), 1, own->columns - 1);
  }
}

static double across(struct line line, int i) { return line.first[i * line.step]; }

/* A cell in the first or last column. */
static void update_end(const struct block* block, int now, int row, int column) {
  const struct part* own = &block->own;
  const struct line* beyond = block->beyond[now];
  const double* here = block->fields[now] + place(own, row, column);
  double north = row > 0 ? here[-pitch(own)] : across(beyond[NORTH], column);
  double south = row < own->rows - 1 ? here[pitch(own)] : across(beyond[SOUTH], column);
  double west = column > 0 ? here[-1] : across(beyond[WEST], row);
  double east = column < own->columns - 1 ? here[1] : across(beyond[EAST], row);
  block->fields[!now][place(own, row, column)] = updated(*here, north, south, west, east);
}

void update_edges(const struct block* block, int now) {
  const struct part* own = &block->own;
  const struct line* beyond = block->beyond[now];
  int last_row = own->rows - 1, last_column = own->columns - 1;
  const double* first = block->fields[now] + place(own, 0, 0);
  const double* last = block->fields[now] + place(own, last_row, 0);
  update_row(block->fields[!now] + place(own, 0, 0), beyond[NORTH].first, first,
             last_row > 0 ? first + pitch(own) : beyond[SOUTH].first, 1, last_column);
  if (last_row > 0)
    update_row(block->fields[!now] + place(own, last_row, 0), last - pitch(own), last, beyond[SOUTH].first, 1,
               last_column);
  for (int row = 0; row <= last_row; ++row) {
    update_end(block, now, row, 0);
    if (last_column > 0) update_end(block, now, row, last_column);
  }
}
