/* Heat in a periodic cube whose mesh follows a moving ball: adaptive refinement in blocks.

   A block has size^3 cells of several variables, and a layer of ghost cells around them. Where the field varies, a
   block is replaced by eight of half its width, and eight are joined again where it no longer does; neighbours differ
   by one level at most. All ranks know the list of blocks, in the order of a Morton curve; each owns a piece of the
   curve, so that blocks move between ranks whenever the mesh changes. A step:

       the ball moves on and heats what lies in it
       5 stages:  ghost cells, axis after axis, a message for each face that two ranks share
                  diffusion
                  Allreduce of the heat of each variable: the next stage cools by it
       the owners say what to divide and to join (Allgatherv), all ranks derive the same mesh, blocks move

       cd examples/mesh
       mpicc -O3 -ffp-contract=off *.c -lm -o mesh
       mpiexec -n 4 ./mesh --size 16 --loops 20

   Messages of a face have size^2 cells of all variables, or a quarter of that between levels: with 8 variables 1 and
   4 KiB where size is 8, 16 and 64 KiB where it is 32. The result has the same bits on any number of ranks, since heat
   is summed in integers.

   Prints by how much the field leaves its bounds, a checksum of its bits, the number of blocks, and per step the wall
   time of the slowest rank, the CPU time of all ranks, their time in MPI, waiting included, on average and at most, and
   all ranks' calls and bytes sent. The first steps, which are not counted, warm up. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mesh.h"

enum { warm_up = 3, stages = 5 };

int size = 8, levels = 3, variables = 8;
int rank, ranks;
static int loops = 20;

static struct transfer* faces[3]; /* of this rank's blocks, by axis */
static int face_count[3];

/* Where this rank's part in the ghost cells of the mesh comes from and goes to. */
static void find_faces(const struct mesh* mesh) {
  for (int axis = 0; axis < 3; ++axis) {
    face_count[axis] = 0;
    faces[axis] = realloc(faces[axis], (size_t)mesh->count * 8 * sizeof *faces[axis]);
    for (int to = 0; to < mesh->count; ++to)
      for (int where = 2 * axis; where < 2 * axis + 2; ++where)
        for (int part = 0; part < 4 && mesh->blocks[to].beside[where][part] >= 0; ++part) {
          int from = mesh->blocks[to].beside[where][part];
          if (mine(&mesh->blocks[from]) || mine(&mesh->blocks[to]))
            faces[axis][face_count[axis]++] = transfer(mesh->blocks, from, mesh->blocks, to, where);
        }
  }
}

/* One stage; `sums` is the heat before and after. */
static void stage(struct mesh* mesh, int64_t sums[]) {
  double loss[max_variables], begin;
  for (int axis = 0; axis < 3; ++axis) exchange(faces[axis], face_count[axis], mesh->blocks, mesh->blocks, axis);
  for (int v = 0; v < variables; ++v) loss[v] = 0.25 * (double)sums[v] / whole(), sums[v] = 0;
  for (int i = 0; i < mesh->count; ++i)
    if (mine(&mesh->blocks[i])) diffuse(&mesh->blocks[i], loss, sums);
  begin = now();
  MPI_Allreduce(MPI_IN_PLACE, sums, variables, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  spend(begin, variables * (int64_t)sizeof *sums);
}

/* The levels that the blocks should have, as their owners say. */
static void agree(const struct mesh* mesh, int wanted[]) {
  signed char* wishes = malloc((size_t)mesh->count);
  int *counts = malloc(2 * (size_t)ranks * sizeof *counts), *places = counts + ranks;
  for (int owner = 0; owner < ranks; ++owner) {
    places[owner] = first_of(mesh, owner);
    counts[owner] = first_of(mesh, owner + 1) - places[owner];
  }
  for (int i = 0; i < mesh->count; ++i)
    if (mine(&mesh->blocks[i])) wishes[i] = (signed char)wish(&mesh->blocks[i]);
  double begin = now();
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, wishes, counts, places, MPI_SIGNED_CHAR, MPI_COMM_WORLD);
  spend(begin, counts[rank]);
  for (int i = 0; i < mesh->count; ++i) {
    wanted[i] = mesh->blocks[i].level + wishes[i];
    if (wanted[i] < 0) wanted[i] = 0;
    if (wanted[i] > levels) wanted[i] = levels;
  }
  free(wishes);
  free(counts);
}

/* Divides and joins blocks, and moves them to where they belong now. */
static void adapt(struct mesh* mesh) {
  int *wanted = malloc((size_t)mesh->count * sizeof *wanted), *source, moves = 0;
  agree(mesh, wanted);
  balance(mesh, wanted);
  struct mesh next = changed(mesh, wanted, &source);
  struct transfer* transfers = malloc((size_t)(mesh->count + next.count) * sizeof *transfers);
  for (int to = 0; to < next.count; ++to) {
    struct block *block = &next.blocks[to], *from = &mesh->blocks[source[to]];
    if (block->level == from->level && mine(block) && mine(from)) {
      block->cells = from->cells;
      from->cells = NULL;
      continue;
    }
    if (mine(block)) block->cells = malloc((size_t)(variables * volume()) * sizeof *block->cells);
    for (int part = 0; part < (block->level < from->level ? 8 : 1); ++part)
      if (mine(block) || mine(from + part))
        transfers[moves++] = transfer(mesh->blocks, source[to] + part, next.blocks, to, -1);
  }
  exchange(transfers, moves, mesh->blocks, next.blocks, 3);
  for (int i = 0; i < mesh->count; ++i) free(mesh->blocks[i].cells);
  free(mesh->blocks);
  free(transfers);
  free(source);
  free(wanted);
  *mesh = next;
  find_faces(mesh);
}

/* The mesh of level 0, cold but for the ball, then divided as it should be. */
static struct mesh first_mesh(void) {
  struct mesh mesh = {roots * roots * roots, calloc(roots * roots * roots, sizeof *mesh.blocks)};
  for (int i = 0; i < mesh.count; ++i)
    for (int axis = 0; axis < 3; ++axis) mesh.blocks[i].at[axis] = i >> (2 - axis) & 1;
  link_blocks(&mesh);
  for (int i = 0; i < mesh.count; ++i) {
    struct block* block = &mesh.blocks[i];
    if (!mine(block)) continue;
    block->cells = malloc((size_t)(variables * volume()) * sizeof *block->cells);
    for (ptrdiff_t c = 0; c < variables * volume(); ++c) block->cells[c] = cold;
  }
  find_faces(&mesh);
  for (int level = 0; level <= levels; ++level) {
    heat(&mesh, 0);
    adapt(&mesh);
  }
  return mesh;
}

static void take_step(struct mesh* mesh, int step, int64_t sums[]) {
  heat(mesh, step);
  for (int i = 0; i < stages; ++i) stage(mesh, sums);
  adapt(mesh);
}

/* By how much the field leaves its bounds, and a number that depends on all bits and places; the same for any owners.
 */
static uint64_t checksum(const struct mesh* mesh, double* error) {
  uint64_t sum = 0;
  *error = 0;
  for (int i = 0; i < mesh->count; ++i) {
    const struct block* block = &mesh->blocks[i];
    for (int v = 0; mine(block) && v < variables; ++v)
      for (int x = 0; x < size; ++x)
        for (int y = 0; y < size; ++y)
          for (int z = 0; z < size; ++z) {
            double value = block->cells[v * volume() + place(x + 1, y + 1, z + 1)];
            uint64_t bits, at = ((((uint64_t)i * variables + v) * size + x) * size + y) * size + z;
            memcpy(&bits, &value, sizeof bits);
            bits = (bits ^ at * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
            sum += bits ^ bits >> 32;
            *error = fmax(*error, isnan(value) ? INFINITY : fmax(cold - value, value - hot));
          }
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return sum;
}

/* Returns 0 where the options make no sense. */
static int parse(int count, char** words) {
  static const struct {
    const char* name;
    int *value, least, most;
  } options[] = {{"--size", &size, 2, max_size},
                 {"--loops", &loops, 1, 1 << 30},
                 {"--levels", &levels, 0, 10},
                 {"--variables", &variables, 1, max_variables}};
  for (int i = 1; i < count; i += 2) {
    int good = 0;
    for (size_t o = 0; o < sizeof options / sizeof *options; ++o) {
      if (i + 1 == count || strcmp(words[i], options[o].name)) continue;
      char* end;
      long value = strtol(words[i + 1], &end, 10);
      *options[o].value = (int)value;
      good = !*end && end != words[i + 1] && options[o].least <= value && value <= options[o].most;
    }
    if (!good) return 0;
  }
  return size % 2 == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!parse(argc, argv)) {
    if (rank == 0)
      fprintf(stderr,
              "mesh [--size even cells a side of a block, to %d] [--loops STEPS] [--levels 0 to 10]"
              " [--variables 1 to %d]\n",
              max_size, max_variables);
    MPI_Finalize();
    return 2;
  }
  struct mesh mesh = first_mesh();
  int64_t sums[max_variables] = {0};
  for (int step = 0; step < warm_up; ++step) take_step(&mesh, step, sums);
  MPI_Barrier(MPI_COMM_WORLD);
  spent.mpi = 0, spent.calls = spent.bytes = 0;
  double begin = now();
  clock_t cpu = clock();
  for (int step = 0; step < loops; ++step) take_step(&mesh, warm_up + step, sums);
  double seconds = now() - begin, error;
  double most[2] = {seconds, spent.mpi};
  double all[4] = {(double)(clock() - cpu) / CLOCKS_PER_SEC, spent.mpi, (double)spent.calls, (double)spent.bytes};
  uint64_t sum = checksum(&mesh, &error);
  MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("error: %.3e\nchecksum: %016" PRIx64 "\nblocks: %d\n", error, sum, mesh.count);
    printf("seconds: %.9f\ncpu: %.9f\n", most[0] / loops, all[0] / loops);
    printf("mpi: %.9f\nmpi_most: %.9f\n", all[1] / ranks / loops, most[1] / loops);
    printf("calls: %.1f\nbytes: %.1f\n", all[2] / loops, all[3] / loops);
  }
  MPI_Finalize();
  return error > 1e-12;
}
