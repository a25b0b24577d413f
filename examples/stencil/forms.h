/* The forms of communication: how a block gets at the cells around it. */
#ifndef STENCIL_FORMS_H
#define STENCIL_FORMS_H

#include "block.h"

/* What create returns the others get as `self`; all ranks call all of them. */
struct form {
  const char* name;
  void* (*create)(struct block* block); /* allocates the block's fields and fills them */
  /* Between start and finish a rank updates what lies inside its block in field `now`, after finish the edges, which
     read the lines `beyond` it. */
  void (*start)(void* self, const struct block* block, int now);
  void (*finish)(void* self, const struct block* block, int now);
  void (*destroy)(void* self, struct block* block);
};

extern const struct form messages, put, shared;

/* What this rank has asked of MPI since it was set to 0. */
extern struct traffic {
  long long calls, bytes; /* sent or put */
} traffic;

/* Counts the bytes of lines that go to the neighbour on a side. */
void count_lines(const struct block* block, int side, int count);

enum { requests_of_exchange = 2 * SIDES };

/* Sends to each neighbour the line along its side, and receives the halo beyond it. `count` of a side is 1, or 0 for an
   empty message, which says that the line is there. Both neighbours have to agree. */
void start_exchange(const struct block* block, const int count[SIDES], int now,
                    MPI_Request requests[requests_of_exchange]);

#endif
