// What all steps of life.hpp share, and the walk through them.
#include "tests/heap/life/life.hpp"

#include <sys/uio.h>

#include <initializer_list>

namespace life {

Life life_of;

void say(const char* format, ...) {
  char text[400];
  int used = std::snprintf(text, sizeof text, "%zu %s: ", life_of.step, life_of.name);
  va_list list;
  va_start(list, format);
  used += std::vsnprintf(text + used, sizeof text - std::size_t(used) - 1, format, list);
  va_end(list);
  text[used++] = '\n';
  (void)!write(life_of.log, text, std::size_t(used));
}

std::uint64_t sum(const byte* at, std::size_t size, bool altered) {
  std::uint64_t result = size;
  auto add = [&](const byte* from, std::size_t bytes) {
    std::size_t i = 0;
    for (std::uint64_t word; i + 8 <= bytes; i += 8) {
      std::memcpy(&word, from + i, 8);
      result = (result ^ word) * 0x9e3779b97f4a7c15;
    }
    for (; i < bytes; ++i) result = (result ^ std::uint64_t(from[i])) * 0x9e3779b97f4a7c15;
  };
  if (!altered) {
    add(at, size);
    return result;
  }
  byte copy[page];
  for (std::size_t done = 0; done < size; done += page) {
    const iovec here = {copy, page}, there = {const_cast<byte*>(at) + done, page};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != ssize_t(page)) std::memset(copy, 0xee, page);
    add(copy, page);
  }
  return result;
}

std::uint64_t sum_of_all() {
  std::uint64_t result = 0;
  for (const Block& block : life_of.blocks) result = result * 31 + sum(block);
  return result;
}

void fill(byte* at, std::size_t size, std::uint64_t what) {
  if (!at) return;
  std::size_t i = 0;
  for (std::uint64_t word = what * 0x9e3779b97f4a7c15; i + 8 <= size; i += 8, word += 0x9e3779b97f4a7c15)
    std::memcpy(at + i, &word, 8);
  for (; i < size; ++i) at[i] = byte(what + i);
}

void fill(const Block& block, Draw& draw) { fill(block.at, block.size, draw.next() + unsigned(life_of.rank)); }

Pages pages_of(const Block& block, Draw& draw) {
  const std::size_t all = block.size / page, first = draw.below(all);
  return {block.at + first * page, (1 + draw.below(all - first)) * page};
}

bool is_left_out(const char* name) {
  for (char** one = life_of.arguments + 5; *one; ++one)
    if (!std::strcmp(*one, name)) return true;
  return false;
}

pid_t (*some_fork(Draw& draw))() { return draw.below(3) || is_left_out("_Fork") ? fork : _Fork; }

Block& fresh(Draw& draw, bool paged) {
  constexpr std::size_t sizes[] = {1,       40,      4000,    32 * kib - 1, 32 * kib, 40'000,      70'001,  128 * kib,
                                   130'000, 200'000, 300'001, 512 * kib,    mib,      2 * mib - 1, 2 * mib, 5 * mib};
  constexpr std::size_t pages[] = {1, 8, 9, 16, 17, 33, 64, 100, 256, 512, 513, 1024};
  Block& block = life_of.blocks[draw.below(24)];
  release(block);
  block = {};
  block.size = paged ? draw.among(pages) * page : draw.among(sizes);
  block.paged = paged;
  block.at = static_cast<byte*>(paged ? std::aligned_alloc(page, block.size) : std::malloc(block.size));
  fill(block, draw);
  return block;
}

Block& some(Draw& draw, bool paged) {
  for (int i = 0; i < 8; ++i)
    if (Block& block = life_of.blocks[draw.below(24)]; block.at && (!paged || block.paged)) return block;
  return fresh(draw, paged);
}

}  // namespace life

using namespace life;

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Step *begin = nullptr, *end = nullptr;
  Step all[100];
  std::size_t count = 0, weights = 0;
  for (auto* add : {add_memory, add_processes, add_messages}) {
    add(begin, end);
    for (; begin != end; ++begin) all[count++] = *begin, weights += std::size_t(begin->weight);
  }
  life_of.arguments = argv;
  life_of.seed = std::strtoull(argv[1], nullptr, 10);
  const std::size_t first = std::strtoull(argv[2], nullptr, 10), last = std::strtoull(argv[3], nullptr, 10);
#ifdef WITH_MPI
  extern void begin_mpi(int&, char**&), end_mpi();
  begin_mpi(argc, argv);
#endif
  char path[512];
  std::snprintf(path, sizeof path, "%s%d", argv[4], life_of.rank);
  const int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  life_of.log = fcntl(log, F_DUPFD_CLOEXEC, 200);
  close(log);
  for (life_of.step = first; life_of.step < last; ++life_of.step) {
    Draw draw(life_of.seed * 1'000'003 + life_of.step * 7919);
    std::size_t at = draw.below(weights);
    const Step* step = all;
    while (at >= std::size_t(step->weight)) at -= std::size_t((step++)->weight);
    life_of.name = step->name;
    if (!is_left_out(step->name)) step->run(draw);
    if (life_of.step % 8 == 7) life_of.name = "all", say("%016lx", sum_of_all());
  }
  life_of.name = "end";
  end_processes();
  say("%016lx", sum_of_all());
  for (Block& block : life_of.blocks) release(block);
#ifdef WITH_MPI
  end_mpi();
#endif
}
