/* Interface of libnearfield-heap.so for the engine, which looks the functions up at run time. */
#ifndef NEARFIELD_HEAP_H
#define NEARFIELD_HEAP_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of this build; libnearfield.so of another one leaves the heap alone. */
const char* nearfield_heap_version(void);

/* The region that new allocations come from; generation 0: there is none. A fork begins another generation. */
struct nearfield_heap_view {
  void* base;
  size_t size; /* bytes of address space, not of memory */
  size_t used; /* bytes from the base below which all blocks lie */
  uint64_t generation;
};

/* Fills `view`. Returns 0, or -1 if there is no region that peers can reach. */
int nearfield_heap_current(struct nearfield_heap_view* view);

/* Returns 1 if allocations of this process come from a region, which the first of them creates; 0 if the heap is off. */
int nearfield_heap_serves(void);

/* Returns a descriptor of the region of that generation, which the caller closes; -1 if the region is no longer
   current, since a fork in another thread may retire it at any time. */
int nearfield_heap_descriptor(uint64_t generation);

/* Returns 1 if all `bytes` bytes, at least one, lie in the current region and the program has mapped nothing else over
   them, so that peers, who map the region's file, see the same contents. */
int nearfield_heap_contains(const void* address, size_t bytes);

/* Notes that peers read or write these bytes of the current region, 1 MiB or more of one block. Blocks that are used
   repeatedly may get huge pages. */
void nearfield_heap_use(const void* address, size_t bytes);

/* Registers `visit`, which is called in a process that is about to fork, once peers can no longer map its region. It
   calls `keep` for every range that peers may be reading or writing now. Such blocks stay shared in the parent. */
void nearfield_heap_on_fork(void (*visit)(void (*keep)(const void* begin, size_t bytes, void* context),
                                          void* context));

/* Placement of pages of the heap: on one NUMA node as long as it has free memory, or interleaved on several. */
struct nearfield_heap_placement {
  uint64_t nodes[16]; /* bit n % 64 of word n / 64: node n */
  uint64_t most;      /* bytes of a region that this applies to */
  int rest;           /* node of the bytes beyond; -1: any */
};

/* Sets the placement of new pages, also in regions that a fork begins, and moves existing pages if possible. Returns 0,
   or -1 with errno set if the kernel refuses. */
int nearfield_heap_place(const struct nearfield_heap_placement* placement);

/* `more` 1: allocations of all threads come from the next allocator, until as many calls with -1 have followed. This is for
   the host MPI's own allocations: peers never access them, and shared pages take more memory than private ones. Existing
   blocks stay, and may be freed and resized. */
void nearfield_heap_pause(int more);

struct nearfield_heap_statistics {
  uint64_t allocations;    /* served from regions so far */
  uint64_t bytes_in_use;   /* allocated now */
  uint64_t bytes_kept;     /* freed and kept for reuse */
  uint64_t bytes_highest;  /* maximum of in use and kept so far */
  uint64_t huge_extents;   /* 2 MiB pages made */
  uint64_t forks;          /* forks that copied or remapped blocks */
};
void nearfield_heap_stats(struct nearfield_heap_statistics* statistics);

#ifdef __cplusplus
}
#endif
#endif
