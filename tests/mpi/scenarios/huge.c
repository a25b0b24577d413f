/* Calls whose bytes, counted over all ranks, pass 2^31 and 2^32. Buffers are one small file mapped again and again,
   with pages of their own where blocks begin and end: only those are looked at. */
#include <sys/mman.h>
#include "scenarios.h"

enum { page = 4096, tile = 16 << 20 };
static int tiles = -1;

static char* buffer(size_t block, int blocks) {
  const size_t bytes = (block * blocks + 2 * tile) / tile * tile;
  char* at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (tiles < 0) {
    tiles = memfd_create("tiles", 0);
    if (ftruncate(tiles, tile)) exit(1);
  }
  for (size_t k = 0; k < bytes; k += tile) mmap(at + k, tile, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, tiles, 0);
  for (int b = 0; b <= blocks; ++b) {
    const size_t border = block * b / page * page, from = border > page ? border - page : 0;
    mmap(at + from, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  return at;
}

static void give_back(char* at, size_t block, int blocks) { munmap(at, (block * blocks + 2 * tile) / tile * tile); }

static void mark(char* at, size_t block, int from, int to) { at[0] = at[block - 1] = (char)(1 + from * 10 + to); }

static int marked(const char* at, size_t block, int from, int to) {
  const char value = (char)(1 + from * 10 + to);
  return at[0] == value && at[block - 1] == value;
}

static void gather(size_t n) {
  char *in = buffer(n, 1), *out = rank == 1 ? buffer(n, size) : NULL;
  mark(in, n, rank, 1);
  CHECK(MPI_Gather(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int r = 0; out && r < size; ++r) CHECK(marked(out + r * n, n, r, 1));
  give_back(in, n, 1);
  if (out) give_back(out, n, size);
}

static void scatter(size_t n) {
  char *in = rank == 1 ? buffer(n, size) : NULL, *out = buffer(n, 1);
  for (int r = 0; in && r < size; ++r) mark(in + r * n, n, 1, r);
  CHECK(MPI_Scatter(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(marked(out, n, 1, rank));
  give_back(out, n, 1);
  if (in) give_back(in, n, size);
}

static void alltoall(size_t n) {
  char *in = buffer(n, size), *out = buffer(n, size);
  for (int r = 0; r < size; ++r) mark(in + r * n, n, rank, r);
  CHECK(MPI_Alltoall(in, (int)n, MPI_BYTE, out, (int)n, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(marked(out + r * n, n, r, rank));
  give_back(in, n, size);
  give_back(out, n, size);
}

static void allgather_in_place(size_t n) {
  char* both = buffer(n, size);
  mark(both + rank * n, n, rank, 0);
  CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, both, (int)n, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(marked(both + r * n, n, r, 0));
  give_back(both, n, size);
}

/* One message of `n` bytes and more. */
static void message(size_t n) {
  enum { unit = 1 << 20 };
  const int count = (int)(n / unit) + 1;
  const size_t bytes = (size_t)count * unit;
  char* both = buffer(bytes, 1);
  MPI_Datatype units;
  MPI_Status status;
  MPI_Type_contiguous(unit, MPI_BYTE, &units);
  MPI_Type_commit(&units);
  if (rank == 0) {
    mark(both, bytes, 0, 1);
    MPI_Send(both, count, units, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    int got = 0;
    MPI_Recv(both, count, units, 0, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, units, &got);
    CHECK(marked(both, bytes, 0, 1) && got == count);
  }
  MPI_Type_free(&units);
  give_back(both, bytes, 1);
}

/* The argument is the bytes of a block. */
#define OF_BLOCKS(name) \
  SCENARIO(huge_##name) { name(strtoul(argv[1], NULL, 10)); }
OF_BLOCKS(message)
OF_BLOCKS(gather)
OF_BLOCKS(scatter)
OF_BLOCKS(alltoall)
OF_BLOCKS(allgather_in_place)
