/* Diffusion of heat on a rectangle of cells: in every sweep each cell moves towards the mean of the four around it.

   Ranks form a grid, each has a block of cells and needs those along its neighbours' sides. The forms of getting at
   them:

       messages  non-blocking sends and receives (messages.c)
       put       one-sided MPI_Put into the neighbours' halos (put.c)
       shared    a shared window: neighbours' cells are read where they lie (shared.c)

   All give the same bits, on any number of ranks. In each a rank starts to communicate, updates the inside of its
   block, waits for its neighbours and updates the edges.

       cd examples/stencil
       mpicc -O3 -ffp-contract=off *.c -lm -o stencil
       mpiexec -n 4 ./stencil --size 1000x600 --loops 500 --form put

   Without --form all run, one after the other. Prints the largest error against the exact solution of the scheme, a
   checksum of the bits of the field, and per sweep the wall time of the slowest rank, the CPU time of all ranks,
   their time in MPI, waiting included, on average and at most, and all ranks' calls and bytes sent or put. The first
   sweeps, which are not counted, warm up. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forms.h"

enum { warm_up = 10 };

static const struct form* const forms[] = {&messages, &put, &shared};
enum { form_count = sizeof forms / sizeof *forms };

struct options {
  int rows, columns, loops, dims[2];
  const struct form* form; /* NULL: all */
};

static const char usage[] =
    "stencil [--size ROWS[xCOLUMNS]] [--loops SWEEPS] [--form messages|put|shared] [--grid ROWSxCOLUMNS of ranks]\n";

/* Two numbers out of "3x4", or one twice out of "3". Returns 0 for anything else. */
static int two_numbers(const char* text, int* first, int* second) {
  char* end;
  *first = *second = (int)strtol(text, &end, 10);
  if (*end == 'x') *second = (int)strtol(end + 1, &end, 10);
  return end != text && !*end;
}

/* Returns 0 where the options make no sense. */
static int parse(int count, char** words, struct options* options) {
  *options = (struct options){1024, 1024, 100, {0, 0}, NULL};
  for (int i = 1; i < count; i += 2) {
    const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
    int good = 0, same;
    if (!strcmp(name, "--size")) good = two_numbers(value, &options->rows, &options->columns);
    if (!strcmp(name, "--grid")) good = two_numbers(value, &options->dims[0], &options->dims[1]);
    if (!strcmp(name, "--loops")) good = two_numbers(value, &options->loops, &same) && same == options->loops;
    for (int form = 0; !strcmp(name, "--form") && form < form_count; ++form)
      if (!strcmp(value, forms[form]->name)) options->form = forms[form], good = 1;
    if (!good) return 0;
  }
  return options->rows > 0 && options->columns > 0 && options->loops > 0 && options->dims[0] >= 0 &&
         options->dims[1] >= 0;
}

/* Sweeps `loops` times from field `now` on; returns the seconds in MPI. */
static double sweep(const struct block* block, const struct form* form, void* self, int now, int loops) {
  double in_mpi = 0;
  for (int loop = 0; loop < loops; ++loop, now = !now) {
    double begin = MPI_Wtime();
    form->start(self, block, now);
    in_mpi += MPI_Wtime() - begin;
    update_inside(block, now);
    begin = MPI_Wtime();
    form->finish(self, block, now);
    in_mpi += MPI_Wtime() - begin;
    update_edges(block, now);
  }
  return in_mpi;
}

/* A number that depends on all bits of all cells and on their places, and not on which rank has them. */
static uint64_t checksum(const struct block* block, const double* field) {
  const struct part* own = &block->own;
  uint64_t sum = 0;
  for (int row = 0; row < own->rows; ++row)
    for (int column = 0; column < own->columns; ++column) {
      uint64_t bits, at = (uint64_t)(own->first_row + row) * block->all_columns + own->first_column + column;
      memcpy(&bits, &field[place(own, row, column)], sizeof bits);
      bits = (bits ^ at * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
      sum += bits ^ bits >> 32;
    }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, block->grid);
  return sum;
}

/* Runs one form and prints its figures. Returns whether the field is right, and its checksum in `sum`. */
static int run(struct block* block, const struct form* form, int loops, uint64_t* sum) {
  void* self = form->create(block);
  sweep(block, form, self, 0, warm_up);
  MPI_Barrier(block->grid);
  traffic = (struct traffic){0, 0};
  double begin = MPI_Wtime();
  clock_t cpu = clock();
  double in_mpi = sweep(block, form, self, warm_up % 2, loops);
  double seconds = MPI_Wtime() - begin;
  double spent[4] = {(double)(clock() - cpu) / CLOCKS_PER_SEC, in_mpi, traffic.calls, traffic.bytes};

  int sweeps = warm_up + loops, size, rank;
  const double* field = block->fields[sweeps % 2];
  double most[3] = {seconds, in_mpi, error_of(block, field, sweeps)};
  *sum = checksum(block, field);
  form->destroy(self, block);
  MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, block->grid);
  MPI_Allreduce(MPI_IN_PLACE, spent, 4, MPI_DOUBLE, MPI_SUM, block->grid);
  MPI_Comm_size(block->grid, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* those of `grid` may be in another order */
  if (rank == 0) {
    printf("form: %s\nerror: %.3e\nchecksum: %016" PRIx64 "\n", form->name, most[2], *sum);
    printf("seconds: %.9f\ncpu: %.9f\n", most[0] / loops, spent[0] / loops);
    printf("mpi: %.9f\nmpi_most: %.9f\n", spent[1] / size / loops, most[1] / loops);
    printf("calls: %.1f\nbytes: %.1f\n", spent[2] / loops, spent[3] / loops);
  }
  return most[2] < 1e-14 + 1e-15 * sweeps; /* roundings add up; a stale halo is worse by far */
}

int main(int argc, char** argv) {
  struct options options;
  struct block block;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int understood = parse(argc, argv, &options);
  if (!understood || !make_block(&block, options.rows, options.columns, options.dims)) {
    if (rank == 0 && !understood) fputs(usage, stderr);
    if (rank == 0 && understood)
      fprintf(stderr, "%d x %d cells cannot be divided among %d ranks\n", options.rows, options.columns, size);
    MPI_Finalize();
    return 2;
  }
  uint64_t sums[form_count];
  int good = 1, ran = 0;
  for (int form = 0; form < form_count; ++form) {
    if (options.form && options.form != forms[form]) continue;
    good &= run(&block, forms[form], options.loops, &sums[ran]);
    good &= sums[ran++] == sums[0];
  }
  if (rank == 0 && !good) fputs("the results are wrong\n", stderr);
  free_block(&block);
  MPI_Finalize();
  return !good;
}
