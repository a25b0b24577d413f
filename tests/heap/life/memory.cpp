// Steps with memory: the allocator's calls, and what becomes of pages of its blocks.
#include <linux/io_uring.h>
#include <malloc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/heap/life/life.hpp"

namespace life {
namespace {

// Newer than the headers of some systems.
constexpr int madv_collapse = 25, madv_dontneed_locked = 24;

constexpr int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr int readable_and_writable = PROT_READ | PROT_WRITE;

// ---------------------------------------------------------------- the allocator

void allocate(Draw& draw) {
  const bool paged = draw.below(2);
  const Block& block = fresh(draw, paged);
  say("%zu paged %d: %d %016lx", block.size, paged, block.at != nullptr, sum(block));
}

void let_go(Draw& draw) { release(some(draw)); }

void zeroed(Draw& draw) {
  Block& block = fresh(draw, false);
  release(block);
  block.at = static_cast<byte*>(std::calloc(block.size / 8 + 1, 8));
  say("%d %016lx", block.at != nullptr, sum(block));
  fill(block, draw);
}

void resized(Draw& draw) {
  Block& block = some(draw);
  if (block.of_mpi || block.altered) return;
  constexpr std::size_t sizes[] = {1, 100, 32 * kib, 33 * kib, 131 * kib, 500'000, mib, 3 * mib, 4 * mib + 1};
  const std::size_t size = draw.among(sizes), kept = size < block.size ? size : block.size;
  const std::uint64_t before = sum(block.at, kept);
  void* const at = draw.below(2) ? std::realloc(block.at, size) : reallocarray(block.at, size, 1);
  if (at) block = {static_cast<byte*>(at), size};
  say("%zu: %d %d", size, at != nullptr, at && before == sum(block.at, kept));
  fill(block, draw);
}

void whole(Draw& draw) {  // programs write all that malloc_usable_size says
  Block& block = some(draw);
  if (block.of_mpi || block.altered) return;
  const std::size_t usable = malloc_usable_size(block.at);
  if (usable >= block.size) std::memset(block.at + block.size, 1, usable - block.size);
  say("%d %016lx", usable >= block.size, sum(block));
}

// All functions with values at the edges. Alignments are what the program asked for; nothing is written.
void edges(Draw& draw) {
  constexpr std::size_t half = std::size_t(1) << 63, most = SIZE_MAX;
  constexpr std::size_t values[] = {0,        1,    2,    3,        8,          24,   page - 1,   page,     page + 1,
                                    100'000,  mib,  half, half - 1, half + 1,   most, most - 10,  most / 2, most - page,
                                    half / 2, 1234, 48,   64,       most / 100, 16,   most - 4095};
  const std::size_t a = draw.among(values), b = draw.among(values), which = draw.below(10);
  void* made = nullptr;
  int code = 0;
  std::size_t alignment = 1;
  errno = 0;
  // Read at run time, so that the compiler does not see what is wrong.
  volatile std::size_t first = a, second = b;
  switch (which) {
    case 0: made = std::malloc(first); break;
    case 1: made = std::calloc(first, second); break;
    case 2: made = std::realloc(std::malloc(100), first ? std::size_t(first) : 1); break;
    case 3: made = reallocarray(nullptr, first, second); break;
    case 4: made = std::aligned_alloc(first, second), alignment = a; break;
    case 5: made = memalign(first, second), alignment = a; break;
    case 6: code = posix_memalign(&made, first, second), alignment = a; break;
    case 7: made = valloc(first), alignment = page; break;
    case 8: made = pvalloc(first), alignment = page; break;
    default: made = std::realloc(std::malloc(40'000), first ? std::size_t(first) : 1); break;
  }
  const bool aligned = !made || alignment < 2 || (alignment & (alignment - 1)) ||
                       reinterpret_cast<std::uintptr_t>(made) % alignment == 0;
  const std::size_t wanted = which == 1 || which == 3 ? a * b : which >= 4 && which <= 6 ? b : a;
  const bool room = !made || wanted > 64 * mib || malloc_usable_size(made) >= wanted;
  say("%zu(%zx, %zx): %d errno %d code %d aligned %d room %d", which, a, b, made != nullptr,
      made || which == 6 ? 0 : errno, code, aligned, room);
  std::free(made);
}

void written(Draw& draw) {
  const Block& block = some(draw);
  if (block.altered) return;
  fill(block, draw);
  say("%016lx", sum(block));
}

// ---------------------------------------------------------------- pages

void advised(Draw& draw) {
  Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  constexpr int advice[] = {MADV_NORMAL,
                            MADV_RANDOM,
                            MADV_SEQUENTIAL,
                            MADV_WILLNEED,
                            MADV_DONTNEED,
                            MADV_DONTNEED,
                            MADV_HUGEPAGE,
                            MADV_NOHUGEPAGE,
                            MADV_DONTDUMP,
                            MADV_DODUMP,
                            MADV_COLD,
                            MADV_PAGEOUT,
                            MADV_POPULATE_READ,
                            MADV_POPULATE_WRITE,
                            MADV_REMOVE,
                            MADV_DONTNEED,
                            madv_collapse,
                            madv_dontneed_locked,
                            999};
  const int chosen = draw.among(advice);
  if (chosen == MADV_REMOVE && is_left_out("MADV_REMOVE")) return;
  const int code = told(madvise(pages.at, pages.bytes, chosen));
  say("%d: %d %016lx", chosen, chosen == madv_collapse ? 0 : code, sum(block));
}

void let_free(Draw& draw) {  // what is there until it is written is either
  const Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  say("%d", told(madvise(pages.at, pages.bytes, MADV_FREE)));
  fill(pages.at, pages.bytes, draw.next());
  say("%016lx", sum(block));
}

void hidden_from_children(Draw& draw) {
  Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  const int advice = draw.below(2) ? MADV_DONTFORK : MADV_WIPEONFORK;
  block.altered = true;
  say("%d: %d", advice, told(madvise(pages.at, pages.bytes, advice)));
  in_child(fork, [&] { say("child sees %016lx", sum(block)); });
  say("%016lx", sum(block));
  if (draw.below(2)) release(block);
}

void locked(Draw& draw) {
  auto kilobytes = [] {
    char text[4096] = {};
    const int fd = open("/proc/self/status", O_RDONLY);
    (void)!read(fd, text, sizeof text - 1);
    close(fd);
    const char* const found = std::strstr(text, "VmLck:");
    return found ? std::atol(found + 6) : -1;
  };
  Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  block.altered = true;
  const long before = kilobytes();
  say("%d: %ld kB", told(mlock(pages.at, pages.bytes)), kilobytes() - before);
  in_child(fork, [&] { say("child has %ld kB, %016lx", kilobytes(), sum(block)); });
  say("after the fork %ld kB", kilobytes() - before);
  if (draw.below(2)) {
    say("%d", told(munlock(pages.at, pages.bytes)));
    say("at last %ld kB", kilobytes() - before);
  } else {
    release(block);
  }
}

void protected_for_a_while(Draw& draw) {
  const Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  const int protection = draw.below(2) ? PROT_NONE : PROT_READ;
  int pipe_[2];
  (void)!pipe(pipe_);
  say("%d", told(mprotect(pages.at, pages.bytes, protection)));
  auto ask = [&](const char* who) {
    say("%s: writes %d", who, told(write(pipe_[1], pages.at, 8)));
    (void)!write(pipe_[1], "12345678", 8);
    say("%s: reads %d", who, told(read(pipe_[0], pages.at + pages.bytes - 8, 8)));
  };
  ask("own");
  in_child(fork, [&] { ask("child"); });
  close(pipe_[0]), close(pipe_[1]);
  say("%d", told(mprotect(pages.at, pages.bytes, readable_and_writable)));
  say("%016lx", sum(block));
}

// Something else at the place of pages: nothing, a file, System V memory. Children share what is a shared mapping.
void mapped_over(Draw& draw) {
  Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  const std::size_t what = draw.below(5);
  const std::uint64_t contents = draw.next();
  block.altered = true;
  if (what < 3) {
    const int file = what ? memfd_create("life", MFD_CLOEXEC) : -1;
    if (what) {
      (void)!ftruncate(file, off_t(pages.bytes));
      (void)!pwrite(file, &contents, 8, off_t(pages.bytes - page));
    }
    const int flags = (what == 0 ? anonymous : what == 1 ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED;
    say("%zu: %d", what, mmap(pages.at, pages.bytes, readable_and_writable, flags, file, 0) == pages.at);
    if (what) close(file);
  } else if (what == 3) {
    const int id = shmget(IPC_PRIVATE, pages.bytes, IPC_CREAT | 0600);
    say("%zu: %d", what, shmat(id, pages.at, SHM_REMAP) == pages.at);
    shmctl(id, IPC_RMID, nullptr);
  } else {
    say("%zu: %d", what, told(munmap(pages.at, pages.bytes)));
    say("%016lx", sum(block));
    if (mmap(pages.at, pages.bytes, readable_and_writable, anonymous | MAP_FIXED, -1, 0) != pages.at) _exit(3);
  }
  say("%016lx", sum(block));
  fill(pages.at, pages.bytes / 2, contents);
  in_child(fork, [&] {
    say("child sees %016lx", sum(block));
    fill(pages.at, 64, contents + 1);
  });
  say("%016lx", sum(block));
  if (draw.below(2)) release(block);
}

// Pages move elsewhere, and others take their place; what has moved is the program's own, also for children.
void moved(Draw& draw) {
  Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  const bool keeps = draw.one_in(3);
  block.altered = true;
  auto* const room = static_cast<byte*>(mmap(nullptr, pages.bytes, PROT_NONE, anonymous, -1, 0));
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (keeps ? MREMAP_DONTUNMAP : 0);
  auto* const at = static_cast<byte*>(mremap(pages.at, pages.bytes, pages.bytes, flags, room));
  say("%d: %d %016lx, left %016lx", keeps, at == room ? 0 : -errno, at == room ? sum(at, pages.bytes) : 0, sum(block));
  if (at == room) {
    if (mmap(pages.at, pages.bytes, readable_and_writable, anonymous | MAP_FIXED, -1, 0) != pages.at) _exit(3);
    fill(pages.at, page, draw.next());
    in_child(fork, [&] { fill(at, page, 1), fill(pages.at, page, 2); });
    say("%016lx, block %016lx", sum(at, pages.bytes), sum(block));
  }
  munmap(room, pages.bytes);
}

// A store barrier as collectors have: pages are for reading, and a handler makes them for writing.
Pages watched;
int faults;
void on_fault(int, siginfo_t* about, void*) {
  auto* const at = static_cast<byte*>(about->si_addr);
  if (at < watched.at || at >= watched.at + watched.bytes) _exit(4);
  ++faults;
  mprotect(watched.at + (at - watched.at) / page * page, page, readable_and_writable);
}
void barrier(Draw& draw) {
  const Block& block = some(draw, true);
  watched = pages_of(block, draw), faults = 0;
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_fault, action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
  mprotect(watched.at, watched.bytes, PROT_READ);
  for (std::size_t i = 0; i < 20; ++i) {
    watched.at[draw.below(watched.bytes)] = byte(i);
    if (i == 10 && draw.below(2)) in_child(fork, [&] { watched.at[0] = watched.at[watched.bytes - 1] = byte(1); });
  }
  say("%d faults, %016lx", faults, sum(block));
  mprotect(watched.at, watched.bytes, readable_and_writable);
  sigaction(SIGSEGV, &before, nullptr);
}

// The kernel keeps pages of a block, as devices and networks do, while the program forks: what it reads then is what
// the program has written since.
void pinned(Draw& draw) {
  const Block& block = some(draw, true);
  const Pages pages = pages_of(block, draw);
  io_uring_params about{};
  const int ring = int(syscall(SYS_io_uring_setup, 2, &about));
  if (ring < 0) return;  // this kernel, or this sandbox, has none
  auto map = [&](std::size_t bytes, off_t what) {
    return static_cast<byte*>(mmap(nullptr, bytes, readable_and_writable, MAP_SHARED | MAP_POPULATE, ring, what));
  };
  const std::size_t long_enough = 4 * page;
  byte* const submission = map(long_enough, IORING_OFF_SQ_RING);
  auto* const entries = reinterpret_cast<io_uring_sqe*>(map(page, IORING_OFF_SQES));
  auto word = [&](unsigned offset) { return reinterpret_cast<unsigned*>(submission + offset); };
  const iovec buffer = {pages.at, pages.bytes};
  say("%d", told(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1)));
  if (draw.below(4)) in_child(some_fork(draw), [&] { fill(pages.at, pages.bytes, 5); });
  fill(pages.at, pages.bytes, draw.next());
  const int file = memfd_create("pinned", MFD_CLOEXEC);
  entries[0] = {};
  entries[0].opcode = IORING_OP_WRITE_FIXED, entries[0].fd = file;
  entries[0].addr = reinterpret_cast<std::uintptr_t>(pages.at), entries[0].len = unsigned(pages.bytes);
  word(about.sq_off.array)[0] = 0;
  __atomic_store_n(word(about.sq_off.tail), 1, __ATOMIC_RELEASE);
  say("%d", told(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0)));
  void* const written = mmap(nullptr, pages.bytes, PROT_READ, MAP_SHARED, file, 0);
  say("%016lx, %016lx", sum(static_cast<byte*>(written), pages.bytes), sum(block));
  munmap(written, pages.bytes), munmap(submission, long_enough), munmap(entries, page);
  close(file), close(ring);
}

constexpr Step steps[] = {
    {"allocate", 20, allocate},
    {"free", 8, let_go},
    {"zeroed", 4, zeroed},
    {"resized", 8, resized},
    {"whole", 2, whole},
    {"edges", 10, edges},
    {"written", 8, written},
    {"advised", 12, advised},
    {"let_free", 3, let_free},
    {"hidden_from_children", 5, hidden_from_children},
    {"locked", 4, locked},
    {"protected", 4, protected_for_a_while},
    {"mapped_over", 8, mapped_over},
    {"moved", 4, moved},
    {"barrier", 3, barrier},
    {"pinned", 3, pinned},
};

}  // namespace

void add_memory(const Step*& begin, const Step*& end) { begin = std::begin(steps), end = std::end(steps); }

// A block whose pages have been altered becomes ordinary memory first, since the allocator goes on with it.
void release(Block& block) {
  extern void free_of_mpi(void*);
  if (block.at && block.altered) {
    munlock(block.at, block.size);
    mmap(block.at, block.size, readable_and_writable, anonymous | MAP_FIXED, -1, 0);
  }
  if (block.of_mpi) free_of_mpi(block.at);
  else std::free(block.at);
  block.at = nullptr;
  block.altered = block.of_mpi = false;
}

}  // namespace life
