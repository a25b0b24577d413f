// What a rank's memory is, from the kernel: the program of bench/memory.py.
//
// Usage: nearfield-memory FILE [BYTES MESSAGES]
//
// Every rank prints a line after MPI_Init, and a second one after it has exchanged so many messages with every other:
//
//   PHASE rank R pss N own N heap N tables N        KiB each
//
//   pss     proportional set size of all mappings but those of Nearfield's shared memory
//   own     memory behind its segment, whether anybody has touched it or not; `heap` the same of its shared heap
//   tables  page tables
//
// Ranks wait for each other by the length of FILE, so that nothing of MPI has been called between MPI_Init and the
// first line.
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

int rank = 0, size = 1;

// What reading takes must not change what is read.
char text[8 << 20];

std::string_view read_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  std::size_t length = 0;
  for (ssize_t got; fd >= 0 && (got = read(fd, text + length, sizeof text - length)) > 0;) length += std::size_t(got);
  close(fd);
  return {text, length};
}

// The `turn`-th meeting of all.
void meet(const char* path, int turn) {
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, "x", 1) != 1) std::abort();
  struct stat now {};
  while (fstat(fd, &now) == 0 && now.st_size < off_t(turn) * size) usleep(10'000);
  close(fd);
}

long number_behind(std::string_view line) {
  const std::size_t digit = line.find_first_of("0123456789");
  return digit == line.npos ? 0 : std::atol(line.data() + digit);
}

struct Memory {
  long pss = 0, own = 0, heap = 0, tables = 0;
};

Memory look() {
  Memory found;
  std::string_view all = read_file("/proc/self/smaps");
  for (bool ours = false; !all.empty();) {
    const std::string_view line = all.substr(0, all.find('\n'));
    all.remove_prefix(line.size() + (line.size() < all.size()));
    const std::size_t colon = line.find(": ");
    const bool field = colon != line.npos && colon < line.find(' ');
    if (!field) ours = line.find("/memfd:nearfield") != line.npos;
    else if (!ours && line.starts_with("Pss:")) found.pss += number_behind(line);
  }
  const std::string_view status = read_file("/proc/self/status");
  if (const std::size_t at = status.find("VmPTE:"); at != status.npos) found.tables = number_behind(status.substr(at));
  // Peers' files are mapped, not open: those that are open are our own.
  for (int fd = 0; fd < 1024; ++fd) {
    char path[32], target[64] = {};
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct stat about {};
    if (readlink(path, target, sizeof target - 1) < 0 || fstat(fd, &about)) continue;
    const std::string_view name(target);
    if (name.starts_with("/memfd:nearfield-heap")) found.heap += about.st_blocks / 2;
    else if (name.starts_with("/memfd:nearfield")) found.own += about.st_blocks / 2;
  }
  return found;
}

void report(const char* phase, const char* file, int turn) {
  meet(file, turn);
  const Memory now = look();
  meet(file, turn + 1);
  std::printf("%s rank %d pss %ld own %ld heap %ld tables %ld\n", phase, rank, now.pss, now.own, now.heap, now.tables);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::memset(text, 1, sizeof text);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  report("first", argv[1], 1);
  if (argc > 3) {
    const int bytes = std::atoi(argv[2]), messages = std::atoi(argv[3]);
    char* const data = static_cast<char*>(std::calloc(2, std::size_t(bytes)));
    for (int i = 0; i < messages; ++i)
      for (int step = 1; step < size; ++step)
        MPI_Sendrecv(data, bytes, MPI_CHAR, (rank + step) % size, 0, data + bytes, bytes, MPI_CHAR,
                     (rank + size - step) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    report("talked", argv[1], 3);
    std::free(data);
  }
  MPI_Finalize();
  return 0;
}
