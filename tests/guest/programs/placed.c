/* Where memory lies, asked of the kernel alone. Arguments, done in their order after MPI_Init and some traffic:

     segment          this rank's own memory of Nearfield, as /proc/self/numa_maps counts its pages
     heap BYTES       memory of malloc
     alloc BYTES WORDS    memory of MPI_Alloc_mem with the hint nearfield_memory=WORDS; "-": no hint
     window BYTES WORDS   memory of MPI_Win_allocate, likewise
     shared BYTES WORDS   memory of MPI_Win_allocate_shared, likewise
     traffic          collectives and messages of all lengths between all ranks

   Each prints "rank R WHAT node0=PAGES node2=PAGES ..." or "rank R WHAT error CLASS: TEXT". */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../nodes/programs/nine.inc"

#define NAME "/memfd:nearfield (deleted)"
enum { nodes = 8, page = 4096 };
static int rank, size;

static void say(const char* what, const long* pages, long absent) {
  char line[256];
  int at = snprintf(line, sizeof line, "rank %d %s", rank, what);
  for (int n = 0; n < nodes; ++n)
    if (pages[n]) at += snprintf(line + at, sizeof line - (size_t)at, " node%d=%ld", n, pages[n]);
  if (absent) at += snprintf(line + at, sizeof line - (size_t)at, " absent=%ld", absent);
  at += snprintf(line + at, sizeof line - (size_t)at, "\n");
  CHECK(write(STDOUT_FILENO, line, (size_t)at) == at); /* at once: launchers mix what comes in parts */
}

/* The nodes of all pages that hold [at, at + bytes). */
static void ask(const char* what, char* at, size_t bytes) {
  long pages[nodes] = {0}, absent = 0;
  char* const end = at + bytes;
  for (at -= (size_t)at % page; at < end; at += page) {
    int node = -1;
    void* where = at;
    CHECK(syscall(SYS_move_pages, 0, 1UL, &where, NULL, &node, 0) == 0);
    if (node >= 0 && node < nodes) ++pages[node];
    else ++absent;
  }
  say(what, pages, absent);
}

static void use(const char* what, char* at, size_t bytes) {
  memset(at, 1, bytes);
  ask(what, at, bytes);
}

/* The file of our own segment: the first of that name that we opened. */
static ino_t own_segment(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    char link[32], name[64] = "";
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0 && !strcmp(name, NAME) && !fstat(fd, &status)) return status.st_ino;
  }
  return 0;
}

static void segment(void) {
  long pages[nodes] = {0};
  const ino_t own = own_segment();
  CHECK(own != 0);
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    unsigned long begin, inode = 0;
    /* Files of other file systems can have the same number. */
    if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &begin, &inode) != 2 || inode != own || !strstr(line, NAME)) continue;
    FILE* counts = fopen("/proc/self/numa_maps", "r");
    char other[4096];
    while (fgets(other, sizeof other, counts)) {
      if (strtoul(other, NULL, 16) != begin) continue;
      for (char* word = strtok(other, " \n"); word; word = strtok(NULL, " \n")) {
        int node;
        long count;
        if (sscanf(word, "N%d=%ld", &node, &count) == 2 && node < nodes) pages[node] += count;
      }
    }
    fclose(counts);
  }
  fclose(maps);
  say("segment", pages, 0);
}

static void traffic(void) {
  static const int counts[] = {1, 300, 20000};
  enum { longest = 1 << 20 };
  static char out[longest], in[longest];
  for (int round = 0; round < 3; ++round) nine_collectives(MPI_COMM_WORLD, counts[round], round);
  for (int away = 1; away < size; ++away)
    for (int bytes = 1; bytes <= longest; bytes *= 8)
      for (int n = 0; n < 4; ++n)
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + away) % size, 0, in, bytes, MPI_CHAR, (rank + size - away) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int went_wrong(const char* what, int code) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING];
  int class, length;
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  dprintf(STDOUT_FILENO, "rank %d %s error %s: %s\n", rank, what, class == MPI_ERR_NO_MEM ? "MPI_ERR_NO_MEM" : "other",
          text);
  return 1;
}

static void allocate(const char* what, MPI_Aint bytes, const char* words) {
  MPI_Info info = MPI_INFO_NULL;
  char* at = NULL;
  MPI_Win window;
  if (strcmp(words, "-")) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "nearfield_memory", words);
  }
  if (!strcmp(what, "alloc")) {
    const int failed = went_wrong(what, MPI_Alloc_mem(bytes, info, &at));
    if (!failed) use(what, at, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD); /* all ranks have theirs at once */
    if (!failed) MPI_Free_mem(at);
  } else {
    const int shared = !strcmp(what, "shared");
    const int code = shared ? MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &at, &window)
                            : MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &at, &window);
    if (!went_wrong(what, code)) {
      MPI_Barrier(MPI_COMM_WORLD);
      use(what, at, (size_t)bytes);
      MPI_Win_free(&window);
    }
  }
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 1; i < argc;) {
    const char* const what = argv[i++];
    if (!strcmp(what, "segment")) {
      segment();
    } else if (!strcmp(what, "traffic")) {
      traffic();
    } else if (!strcmp(what, "heap")) {
      const size_t bytes = strtoul(argv[i++], NULL, 0);
      char* const at = malloc(bytes);
      CHECK(at);
      use(what, at, bytes);
      free(at);
    } else {
      const MPI_Aint bytes = (MPI_Aint)strtoul(argv[i++], NULL, 0);
      allocate(what, bytes, argv[i++]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
