/* The mesh: blocks in the order of a Morton curve, whose neighbours differ by one level at most. */
#include <stdlib.h>
#include <string.h>

#include "mesh.h"

static uint64_t key_of(int level, const int at[3]) {
  uint64_t key = 0;
  for (int bit = 0; bit < 20; ++bit)
    for (int axis = 0; axis < 3; ++axis)
      key |= (uint64_t)((at[axis] << (levels - level)) >> bit & 1) << (3 * bit + 2 - axis);
  return key;
}

/* The block that has the lower corner of such a place. */
static int find(const struct mesh* mesh, int level, const int at[3]) {
  uint64_t key = key_of(level, at);
  int low = 0, high = mesh->count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (mesh->blocks[middle].key <= key) low = middle;
    else high = middle;
  }
  return low;
}

int first_of(const struct mesh* mesh, int owner) { return (int)(((int64_t)owner * mesh->count + ranks - 1) / ranks); }

void link_blocks(struct mesh* mesh) {
  for (int owner = 0; owner < ranks; ++owner)
    for (int i = first_of(mesh, owner); i < first_of(mesh, owner + 1); ++i) mesh->blocks[i].owner = owner;
  for (int i = 0; i < mesh->count; ++i) mesh->blocks[i].key = key_of(mesh->blocks[i].level, mesh->blocks[i].at);
  for (int i = 0; i < mesh->count; ++i) {
    struct block* block = &mesh->blocks[i];
    memset(block->beside, -1, sizeof block->beside);
    for (int where = 0; where < 6; ++where) {
      int axis = where / 2, upper = where % 2, all = roots << block->level, at[3];
      memcpy(at, block->at, sizeof at);
      at[axis] = (at[axis] + (upper ? 1 : all - 1)) % all;
      block->beside[where][0] = find(mesh, block->level, at);
      if (mesh->blocks[block->beside[where][0]].level <= block->level) continue;
      for (int part = 0; part < 4; ++part) {
        int child[3] = {2 * at[0], 2 * at[1], 2 * at[2]};
        child[axis] += !upper;
        child[(axis + 1) % 3] += part & 1;
        child[(axis + 2) % 3] += part >> 1;
        block->beside[where][part] = find(mesh, block->level + 1, child);
      }
    }
  }
}

/* Whether block i is the first of eight that make up a block of the level above, and all want to. */
static int joins(const struct mesh* mesh, const int wanted[], int i) {
  const struct block* block = &mesh->blocks[i];
  if (!block->level || i + 8 > mesh->count || (block->at[0] | block->at[1] | block->at[2]) & 1) return 0;
  for (int part = 0; part < 8; ++part)
    if (block[part].level != block->level || wanted[i + part] >= block->level) return 0;
  return 1; /* eight of a level, from the first on, are of one family: they lie on the curve without a gap */
}

void balance(const struct mesh* mesh, int wanted[]) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int i = 0; i < mesh->count; ++i)
      for (const int *beside = mesh->blocks[i].beside[0], *end = beside + 24; beside < end; ++beside)
        if (*beside >= 0 && wanted[*beside] < wanted[i] - 1) wanted[*beside] = wanted[i] - 1, changed = 1;
    for (int i = 0; i < mesh->count; ++i)
      if (joins(mesh, wanted, i)) i += 7;
      else if (wanted[i] < mesh->blocks[i].level) wanted[i] = mesh->blocks[i].level, changed = 1;
  }
}

struct mesh changed(const struct mesh* old, const int wanted[], int** source) {
  struct mesh mesh = {0, calloc((size_t)old->count * 8, sizeof *mesh.blocks)};
  *source = malloc((size_t)old->count * 8 * sizeof **source);
  for (int i = 0; i < old->count; ++i) {
    const struct block* block = &old->blocks[i];
    int parts = wanted[i] > block->level ? 8 : 1;
    for (int part = 0; part < parts; ++part) {
      struct block* next = &mesh.blocks[mesh.count];
      next->level = wanted[i];
      for (int axis = 0; axis < 3; ++axis)
        next->at[axis] =
            parts == 8 ? 2 * block->at[axis] + (part >> (2 - axis) & 1) : block->at[axis] >> (block->level - wanted[i]);
      (*source)[mesh.count++] = i;
    }
    if (wanted[i] < block->level) i += 7;
  }
  link_blocks(&mesh);
  return mesh;
}
