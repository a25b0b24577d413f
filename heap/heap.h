/* What libnearfield-heap.so offers to the engine, which looks the functions up at run time. */
#ifndef NEARFIELD_HEAP_H
#define NEARFIELD_HEAP_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The region that new allocations come from; generation 0: there is none. A fork begins another generation. */
struct nearfield_heap_view {
  void* base;
  size_t size; /* bytes of address space, not of memory */
  size_t used; /* bytes from the base below which all blocks lie */
  uint64_t generation;
};

/* Fills `view`; 0, or -1 with errno set when there is no region. */
int nearfield_heap_current(struct nearfield_heap_view* view);

/* 1 when allocations of this process come from regions, now or from the first one on; 0: it is off, or stays out. */
int nearfield_heap_serves(void);

/* A descriptor of the region of that generation, which the caller closes; -1 when it is not the current one any more,
   since a fork in another thread may retire it at any time. */
int nearfield_heap_descriptor(uint64_t generation);

/* 1 when `address` lies in the current region and peers may map it. */
int nearfield_heap_contains(const void* address);

/* Peers read or write these bytes of the current region, which are in one block, at 1 MiB or more: what is used again and
   again may get huge pages. */
void nearfield_heap_use(const void* address, size_t bytes);

/* `visit` is called in a process that is about to fork, after its region has been taken out of reach: it calls
   `keep` for every range that peers may be reading or writing now. Such blocks stay shared in the parent. */
void nearfield_heap_on_fork(void (*visit)(void (*keep)(const void* begin, size_t bytes, void* context),
                                          void* context));

/* Where pages of the heap should lie: on one NUMA node as long as it has any, or by turns on several. */
struct nearfield_heap_placement {
  uint64_t nodes[16]; /* bit n % 64 of word n / 64: node n */
  uint64_t most;      /* bytes of a region for which that holds */
  int rest;           /* node for what lies beyond; -1: any */
};

/* For the pages that are made from now on, also in regions that a fork begins; those that are there already are moved
   where that is possible. 0, or -1 with errno set where the kernel refuses. */
int nearfield_heap_place(const struct nearfield_heap_placement* placement);

/* From now on allocations of every thread come from the next allocator (`more` 1), until there are as many calls with -1:
   what a host MPI allocates for itself needs no peers, and shared pages are made more generously than private ones.
   Blocks that are there stay, and may be freed and resized. */
void nearfield_heap_pause(int more);

struct nearfield_heap_statistics {
  uint64_t allocations;    /* served from regions so far */
  uint64_t bytes_in_use;   /* handed out now */
  uint64_t bytes_kept;     /* freed and kept for reuse */
  uint64_t bytes_highest;  /* in use and kept, at most so far */
  uint64_t huge_extents;   /* 2 MiB pages made */
  uint64_t forks;          /* that had to take a snapshot */
};
void nearfield_heap_stats(struct nearfield_heap_statistics* statistics);

#ifdef __cplusplus
}
#endif
#endif
