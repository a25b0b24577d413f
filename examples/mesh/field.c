/* The field: a ball that heats, and diffusion. Sums are made in one order within a block, and in integers beyond. */
#include <math.h>
#include <stdlib.h>

#include "mesh.h"

/* From `a` to `b` around the cube. */
static double apart(double a, double b) {
  double straight = fabs(a - b);
  return straight < 0.5 ? straight : 1 - straight;
}

void heat(const struct mesh* mesh, int step) {
  static const double start[3] = {0.25, 0.35, 0.55}, speed[3] = {0.013, 0.009, 0.005}, radius = 0.15;
  for (int i = 0; i < mesh->count; ++i) {
    const struct block* block = &mesh->blocks[i];
    double squares[3][max_size], width = 1.0 / (roots << block->level);
    double nearest = 0;
    if (!mine(block)) continue;
    for (int axis = 0; axis < 3; ++axis) {
      double ball = start[axis] + step * speed[axis], least = 1;
      ball -= floor(ball);
      for (int c = 0; c < size; ++c) {
        double d = apart(ball, width * (block->at[axis] + (c + 0.5) / size));
        squares[axis][c] = d * d;
        if (d * d < least) least = d * d;
      }
      nearest += least;
    }
    if (nearest >= radius * radius) continue;
    for (int v = 0; v < variables; ++v)
      for (int x = 0; x < size; ++x)
        for (int y = 0; y < size; ++y)
          for (int z = 0; z < size; ++z)
            if (squares[0][x] + squares[1][y] + squares[2][z] < radius * radius)
              block->cells[v * volume() + place(x + 1, y + 1, z + 1)] = hot;
  }
}

double whole(void) { return ldexp((double)size * size * size * roots * roots * roots, 20); }

void diffuse(struct block* block, const double loss[], int64_t sums[]) {
  static double* spare; /* where the block's cells go; where they were is the next one's spare */
  const ptrdiff_t right = side(), back = right * right, all = right * back;
  const int n = size; /* a constant, since cells could be anything's */
  if (!spare) spare = malloc((size_t)(variables * all) * sizeof *spare);
  for (int v = 0; v < variables; ++v) {
    const double rate = ldexp(0.15 / (1 + v % 4), -2 * (levels - block->level)), lost = loss[v];
    double columns[max_size] = {0}, sum = 0;
    for (int x = 1; x <= n; ++x)
      for (int y = 1; y <= n; ++y) {
        const double* restrict c = block->cells + v * all + place(x, y, 1);
        double* restrict out = spare + v * all + place(x, y, 1);
        for (int z = 0; z < n; ++z) {
          double around = ((c[z - back] + c[z + back]) + (c[z - right] + c[z + right])) + (c[z - 1] + c[z + 1]);
          double spread = c[z] + rate * (around - 6 * c[z]);
          out[z] = spread - lost * (spread - cold);
          columns[z] += out[z];
        }
      }
    for (int z = 0; z < n; ++z) sum += columns[z];
    sums[v] += llrint(ldexp(sum, 20 - 3 * block->level));
  }
  double* before = block->cells;
  block->cells = spare;
  spare = before;
}

int wish(const struct block* block) {
  double least = hot, most = cold;
  for (int x = 1; x <= size; ++x)
    for (int y = 1; y <= size; ++y)
      for (int z = 1; z <= size; ++z) {
        double value = block->cells[place(x, y, z)];
        if (value < least) least = value;
        if (value > most) most = value;
      }
  return most - least > 0.25 ? 1 : most - least < 0.1 ? -1 : 0;
}
