/* Other mappings in place of pages of buffers: peers get what is there, and no longer what was there before. */
#include <sys/mman.h>
#include <sys/shm.h>
#include "scenarios.h"

enum { page = 4096, rounds = 20 };
static const char* const ways[] = {"anonymous", "file", "shm", "moved-here", "moved-away", "unmapped"};
enum { way_count = sizeof ways / sizeof *ways, protection = PROT_READ | PROT_WRITE };

/* The pages are writable afterwards. */
static void lay(const char* way, char* at, size_t bytes) {
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!strcmp(way, "anonymous")) {
    REQUIRE(mmap(at, bytes, protection, anonymous | MAP_FIXED, -1, 0) == at);
  } else if (!strcmp(way, "file")) {
    const int fd = memfd_create("theirs", 0);
    REQUIRE(ftruncate(fd, (off_t)bytes) == 0);
    REQUIRE(mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) == at);
    close(fd);
  } else if (!strcmp(way, "shm")) {
    const int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    REQUIRE(shmat(id, at, SHM_REMAP) == at);
    shmctl(id, IPC_RMID, NULL);
  } else if (!strcmp(way, "moved-here")) {
    void* const from = mmap(NULL, bytes, protection, anonymous, -1, 0);
    REQUIRE(mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
  } else if (!strcmp(way, "moved-away")) {
    void* const to = mmap(NULL, bytes, protection, anonymous, -1, 0);
    REQUIRE(mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    REQUIRE(mmap(at, bytes, protection, anonymous | MAP_FIXED_NOREPLACE, -1, 0) == at);
    munmap(to, bytes);
  } else {
    REQUIRE(munmap(at, bytes) == 0);
    REQUIRE(mmap(at, bytes, protection, anonymous | MAP_FIXED_NOREPLACE, -1, 0) == at);
  }
}

static void fill(char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = (char)(seed + i / 61);
}
static int filled(const char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i)
    if (data[i] != (char)(seed + i / 61)) return 0;
  return 1;
}

/* Sent to the other rank, received from it, given and taken in collectives. */
static void talk(char* mine, char* theirs, size_t bytes, unsigned seed, const char* when) {
  const unsigned my_seed = seed + 3 * rank, their_seed = seed + 3 * (1 - rank);
  const int count = (int)bytes;
  fill(mine, bytes, my_seed);
  memset(theirs, 0, bytes);
  MPI_Sendrecv(mine, count, MPI_CHAR, 1 - rank, 1, theirs, count, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(filled(theirs, bytes, their_seed), "a message, %s", when);
  CHECK(filled(mine, bytes, my_seed), "what was sent, %s", when);
  if (rank == 0) fill(theirs, bytes, seed);
  MPI_Bcast(theirs, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK(filled(theirs, bytes, seed), "bcast, %s", when);
  MPI_Allreduce(mine, theirs, count, MPI_CHAR, MPI_BOR, MPI_COMM_WORLD);
  int good = 1;
  for (size_t i = 0; i < bytes; ++i) good &= theirs[i] == (char)((char)(my_seed + i / 61) | (char)(their_seed + i / 61));
  CHECK(good, "allreduce, %s", when);
}

/* BYTES WHAT: "send" and "receive" say which buffers get other mappings; "part" lays them over a part. */
SCENARIO(overlaid) {
  REQUIRE(argc == 3 && size == 2);
  const size_t bytes = strtoull(argv[1], NULL, 10);
  const int part = !strcmp(argv[2], "part"), sends = part || !strcmp(argv[2], "send");
  const size_t at = part ? bytes / 2 / page * page : 0, length = part ? 2 * page : bytes;
  for (int round = 0; round < rounds; ++round) {
    const char* const way = ways[round % way_count];
    char *const a = aligned_alloc(page, bytes), *const b = aligned_alloc(page, bytes);
    REQUIRE(a && b);
    talk(a, b, bytes, 10 * round, "before");
    lay(way, (sends ? a : b) + at, length);
    talk(a, b, bytes, 10 * round + 1, way);
    talk(b, a, bytes, 10 * round + 2, way);
    free(a);
    free(b);
  }
}
