// Random process life: what a program does with memory and processes, and what it can observe of it, line by line.
//
//   life SEED FIRST END LOG [NAME...]     steps FIRST to END of SEED; what they are follows from seed and number alone
//
// A run beside the heap and a plain one write the same lines (tests/heap/life/__init__.py compares them): contents,
// return values, errno, what a child sees and what its parent sees afterwards. Addresses and times are in none. Steps
// that NAME names are left out. Compiled with MPI (-DWITH_MPI) ranks do the same steps, each with contents of its own,
// and exchange their blocks.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace life {

using std::byte;
constexpr std::size_t page = 4096, kib = 1 << 10, mib = 1 << 20;

// Draws numbers; the same on all ranks.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return std::size_t(next() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T, std::size_t n>
  T among(const T (&values)[n]) {
    return values[below(n)];
  }

 private:
  std::uint64_t state_;
};

// A block of the program's. Paged ones begin at a page and are whole pages, and what pages can become happens to them.
struct Block {
  byte* at = nullptr;
  std::size_t size = 0;
  bool paged = false;
  bool of_mpi = false;
  bool altered = false;  // its pages may not be readable everywhere, or not be the allocator's
};

struct Life {
  std::uint64_t seed = 0;
  std::size_t step = 0;
  const char* name = "";
  int rank = 0, size = 1, log = -1;
  char** arguments = nullptr;
  Block blocks[24];
};
extern Life life_of;

// Whether something has been left out by its name: of a step, or of what a step may do.
bool is_left_out(const char* name);

// A line of the log.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// What a block contains; of altered ones each page is asked for by a system call, and one that cannot be read counts as
// such.
std::uint64_t sum(const byte* at, std::size_t size, bool altered = false);
inline std::uint64_t sum(const Block& block) { return sum(block.at, block.at ? block.size : 0, block.altered); }
std::uint64_t sum_of_all();
void fill(byte* at, std::size_t size, std::uint64_t what);
void fill(const Block& block, Draw& draw);
void release(Block& block);
// A block that exists, paged where that is asked for; a new one where there is none.
Block& some(Draw& draw, bool paged = false);
Block& fresh(Draw& draw, bool paged);

pid_t (*some_fork(Draw& draw))();

// A range of whole pages of a block.
struct Pages {
  byte* at;
  std::size_t bytes;
};
Pages pages_of(const Block& block, Draw& draw);

// What a call returned and, where it failed, why.
inline int told(long result) { return result == -1 ? -errno : int(result); }

// Runs a body in a child, which ends by it, and says how it ended.
template <class Body>
void in_child(pid_t (*how)(), Body body) {
  const pid_t child = how();
  if (child == 0) {
    body();
    _exit(7);
  }
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0);
  say("child %d status %x", ended == child && child > 0, unsigned(status));
}

// One kind of step. Adding one is a function and a row of `steps`.
struct Step {
  const char* name;
  int weight;
  void (*run)(Draw&);
};

void add_memory(const Step*& begin, const Step*& end);
void add_processes(const Step*& begin, const Step*& end);
void add_messages(const Step*& begin, const Step*& end);
void end_processes();

}  // namespace life
