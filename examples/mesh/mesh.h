/* What the parts of the program share: options, the blocks of a mesh, and what moves between them. */
#ifndef MESH_H
#define MESH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { roots = 2, max_variables = 64, max_size = 64 };

extern int size, levels, variables; /* cells a side of a block, finest level, variables of a cell */
extern int rank, ranks;

static const double cold = 0.125, hot = 1; /* the field's bounds */

enum kind { SAME, FINER, COARSER }; /* what the receiving block is, next to the sending one */

struct block {
  int level, at[3]; /* place among the (roots << level)^3 blocks that this level could have */
  uint64_t key;     /* place on the curve */
  int owner;
  int beside[6][4]; /* neighbours by side (2 * axis + whether it is the upper one): one, or four finer ones; -1 */
  double* cells;    /* [variable][x][y][z], on the owner alone */
};

struct mesh {
  int count;
  struct block* blocks;
};

/* A box of cells that one block gives to another. Several cells become one by their mean, one becomes several as it is.
 */
struct transfer {
  int from, to;
  enum kind kind;
  int sent[3], first[3];    /* cells of the message, and where they begin in the sending block */
  int written[3], place[3]; /* cells of the receiving block, which are more where it is FINER */
  double* cells;            /* of the message */
};

/* ---- blocks.c: the mesh, which is the same on all ranks */

int first_of(const struct mesh* mesh, int owner); /* ranks own pieces of the curve of one length */

/* Sets keys, owners and neighbours of all blocks, whose levels and places are set. */
void link_blocks(struct mesh* mesh);

/* Raises levels until neighbours differ by one at most, and only whole families are joined. */
void balance(const struct mesh* mesh, int wanted[]);

/* The mesh that has the wanted levels. (*source)[k] is the first of the blocks that its block k is made of. */
struct mesh changed(const struct mesh* old, const int wanted[], int** source);

/* ---- moving.c: cells from one block to another */

/* What block `at_to` gets of block `at_from`: the ghost cells on its side `where`, or all cells (`where` is -1). */
struct transfer transfer(const struct block* senders, int at_from, const struct block* receivers, int at_to, int where);

/* A message for each transfer between this rank and another. All ranks have their transfers in one order, so those of
   two ranks match in that order. */
void exchange(struct transfer* transfers, int count, const struct block* from, struct block* to, int tag);

/* What this rank has asked of MPI since it was set to 0. */
extern struct spent {
  double mpi;
  int64_t calls, bytes; /* bytes: sent */
} spent;

double now(void);
void spend(double begin, int64_t bytes); /* one call, since `begin` */

/* ---- field.c: what happens in the cells of this rank's blocks */

/* The cells within the ball are as hot as can be. */
void heat(const struct mesh* mesh, int step);

/* Heat of a variable, in units of which a cube that is hot all over has so many. */
double whole(void);

/* Diffusion in one block, which then cools by the share `loss` of each variable. Adds up its heat. */
void diffuse(struct block* block, const double loss[], int64_t sums[]);

/* 1 where the field varies so much that a block should be divided, -1 where it could do with less. */
int wish(const struct block* block);

/* ---- geometry */

static inline ptrdiff_t side(void) { return size + 2; }
static inline ptrdiff_t volume(void) { return side() * side() * side(); }
static inline ptrdiff_t place(int x, int y, int z) { return (x * side() + y) * side() + z; }
static inline int mine(const struct block* block) { return block->owner == rank; }

#endif
