// Forks: what they cost in memory, any number of ranges in use, and forks in signal handlers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/heap/helpers.hpp"

using namespace nearfield::heap::testing;

namespace {

constexpr std::size_t mib = 1 << 20;
std::atomic<int> searches_for_holes = 0;

}  // namespace

// In front of the C library's, which the heap calls.
extern "C" off_t lseek(int fd, off_t offset, int whence) noexcept {
  searches_for_holes += whence == SEEK_HOLE;
  return syscall(SYS_lseek, fd, offset, whence);
}

namespace {

void allocate_something() {
  void* volatile p = std::malloc(100'000);  // a pair that nobody looks at would be left out
  std::free(p);
}

// Goes on as an ordinary program does, up to 4 s; whether `condition` came to hold.
template <class Condition>
bool in_time(Condition condition) {
  for (int i = 0; i < 200 && !condition(); ++i) {
    usleep(20'000);
    allocate_something();
  }
  return condition();
}

// The file of the current region, which a fork closes; a descriptor of the test's own tells what is in it.
class RegionFile {
 public:
  RegionFile() {
    nearfield_heap_view view;
    if (nearfield_heap_current(&view) == 0) fd_ = nearfield_heap_descriptor(view.generation);
  }
  ~RegionFile() { close(fd_); }
  std::size_t bytes() const {
    struct stat about {};
    fstat(fd_, &about);
    return std::size_t(about.st_blocks) * 512;
  }

 private:
  int fd_ = -1;
};

// Everything that these 200 MiB occupy, privately or in the region's file.
struct Filled {
  static constexpr std::size_t bytes = 200 * mib;
  Filled() : anonymous_before(status_bytes("RssAnon")), at(static_cast<char*>(std::malloc(bytes))) {
    std::memset(at, 1, bytes);
  }
  std::size_t occupied() const { return file.bytes() + status_bytes("RssAnon") - anonymous_before; }
  std::size_t anonymous_before;
  char* at;
  RegionFile file;
};

TEST(ForkMemory, IsNotHeldTwiceOnceTheChildHasEnded) {
  Filled filled;
  const std::size_t before = filled.occupied();
  ASSERT_TRUE(child_succeeds([&] { return filled.at[5] == 1; }));
  std::memset(filled.at, 2, filled.bytes);
  EXPECT_TRUE(in_time([&] { return filled.occupied() < before + 20 * mib; })) << filled.occupied() - before;
  EXPECT_EQ(filled.at[filled.bytes - 1], 2);
  std::free(filled.at);
  EXPECT_LT(filled.file.bytes(), before - 190 * mib);
  EXPECT_LT(status_bytes("RssAnon"), filled.anonymous_before + 20 * mib);
}

// The kernel walks all pages up to the next hole to find it: once per hole, not once per extent.
TEST(ForkMemory, HolesAreLookedForOnceEach) {
  Filled filled;
  searches_for_holes = 0;
  ASSERT_TRUE(child_succeeds([] { return true; }));
  std::memset(filled.at, 2, filled.bytes / 2);
  EXPECT_TRUE(in_time([&] { return filled.file.bytes() < 110 * mib; })) << filled.file.bytes();
  EXPECT_LT(searches_for_holes, 16);
  std::free(filled.at);
}

TEST(ForkMemory, IsNotHeldTwiceWhereNobodyWaits) {
  Filled filled;
  const std::size_t before = filled.occupied();
  signal(SIGCHLD, SIG_IGN);
  int ended[2];
  ASSERT_EQ(pipe(ended), 0);
  if (fork() == 0) _exit(0);
  close(ended[1]);
  char token;
  EXPECT_EQ(read(ended[0], &token, 1), 0);
  close(ended[0]);
  signal(SIGCHLD, SIG_DFL);
  std::memset(filled.at, 2, filled.bytes);
  EXPECT_TRUE(in_time([&] { return filled.occupied() < before + 20 * mib; })) << filled.occupied() - before;
  std::free(filled.at);
  EXPECT_LT(filled.file.bytes(), before - 190 * mib);
}

TEST(ForkMemory, PagesFirstTouchedAfterTheForkAreHeldOnce) {
  constexpr std::size_t bytes = 64 * mib;
  auto* const p = static_cast<char*>(std::malloc(bytes));
  RegionFile file;
  ASSERT_TRUE(child_succeeds([] { return true; }));
  std::memset(p, 3, bytes);
  EXPECT_TRUE(in_time([&] { return file.bytes() < 8 * mib; })) << file.bytes();
  EXPECT_EQ(p[bytes - 1], 3);
  std::free(p);
}

// A child that closes every descriptor and goes on, with a child of its own, sees what was there at the fork.
TEST(ForkMemory, StaysForChildrenThatBecomeDaemons) {
  constexpr std::size_t bytes = 24 * mib;
  auto* const p = static_cast<char*>(std::malloc(bytes));
  std::memset(p, 1, bytes);
  int* const verdict =
      static_cast<int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto* const go = reinterpret_cast<std::atomic<int>*>(verdict + 1);
  ASSERT_TRUE(child_succeeds([&] {
    if (fork() != 0) return true;
    for (int fd = 3; fd < 1000; ++fd) close(fd);
    while (*go == 0) usleep(1000);
    bool good = true;
    for (std::size_t i = 0; i < bytes; ++i) good &= p[i] == 1;
    *verdict = good ? 1 : 2;
    return true;
  }));
  std::memset(p, 2, bytes);
  ASSERT_TRUE(child_succeeds([] { return true; }));  // another one, that ends
  for (int i = 0; i < 20; ++i) {
    usleep(5'000);
    allocate_something();
  }
  std::free(p);
  *go = 1;
  for (int i = 0; i < 1000 && const_cast<volatile int&>(*verdict) == 0; ++i) usleep(5'000);
  EXPECT_EQ(*verdict, 1);
  munmap(verdict, 4096);
}

TEST(ForkMemory, NothingIsLostWhileThreadsWrite) {
  constexpr std::size_t bytes = 16 * mib;
  std::vector<std::atomic<std::uint64_t>*> blocks;
  for (int i = 0; i < 2; ++i) blocks.push_back(static_cast<std::atomic<std::uint64_t>*>(std::calloc(1, bytes)));
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> written[2] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; !stop; ++n) {
        blocks[t][n * 521 % (bytes / 8)].fetch_add(1, std::memory_order_relaxed);
        ++written[t];
      }
    });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(child_succeeds([] { return true; }));
  stop = true;
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 2; ++t) {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < bytes / 8; ++i) seen += blocks[t][i];
    EXPECT_EQ(seen, written[t]);
    std::free(blocks[t]);
  }
}

TEST(ForkMemory, FreeingTheLastBlockLeavesOthersMappingsAlone) {
  ASSERT_TRUE(child_succeeds([] { return true; }));
  void* const only = std::malloc(mib);  // of a new region
  ASSERT_TRUE(child_succeeds([] { return true; }));
  void* held[8];  // perhaps where that region had room
  for (void*& at : held)
    at =
        mmap(nullptr, std::size_t{8} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  std::free(only);
  for (void* at : held) {
    EXPECT_EQ(madvise(at, std::size_t{8} << 30, MADV_NORMAL), 0);  // ENOMEM: something of it is not mapped
    munmap(at, std::size_t{8} << 30);
  }
}

constexpr int many = 2000;
char* ranges[many];

// More ranges than any table holds at first; the child has what was there, later transfers reach the parent.
TEST(InFlight, AnyNumberOfRangesStaysShared) {
  constexpr std::size_t bytes = 48 << 10;
  for (char*& p : ranges) p = static_cast<char*>(std::malloc(bytes)), std::memset(p, 1, bytes);
  nearfield_heap_view view;
  ASSERT_EQ(nearfield_heap_current(&view), 0);
  auto* const peer = static_cast<char*>(mmap(nullptr, view.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                                             nearfield_heap_descriptor(view.generation), 0));
  nearfield_heap_on_fork([](void (*keep)(const void*, std::size_t, void*), void* context) {
    for (int i = many; i-- > 0;) keep(ranges[i] + 9000, 100, context);  // of different pages, in no order
    keep(ranges[7], 0, context);
  });
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char token;
    (void)!read(go[0], &token, 1);
    bool good = true;
    for (const char* p : ranges) good &= p[9050] == 1 && p[0] == 1 && p[bytes - 1] == 1;
    _exit(good ? 0 : 1);
  }
  nearfield_heap_on_fork(nullptr);
  for (int i = 0; i < many; ++i) peer[ranges[i] - static_cast<char*>(view.base) + 9050] = 9;
  for (const char* p : ranges) ASSERT_EQ(p[9050], 9);
  (void)!write(go[1], "x", 1);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(child_succeeds([] {
    for (char* p : ranges) p[9050] = 5;
    return true;
  }));
  for (char* p : ranges) {
    ASSERT_EQ(p[9050], 9);
    std::free(p);
  }
  munmap(peer, view.size);
  close(go[0]);
  close(go[1]);
}

// A range over two blocks, one of which is freed: the other one becomes private at the next fork all the same.
TEST(InFlight, ARangeMayHoldSeveralBlocks) {
  constexpr std::size_t bytes = 1 * mib;
  static char *a, *b;
  a = static_cast<char*>(std::malloc(bytes));
  b = static_cast<char*>(std::malloc(bytes));
  if (b < a) std::swap(a, b);
  std::memset(a, 1, bytes);
  std::memset(b, 1, bytes);
  nearfield_heap_on_fork([](void (*keep)(const void*, std::size_t, void*), void* context) {
    keep(a, std::size_t(b - a) + bytes, context);
  });
  EXPECT_TRUE(child_succeeds([] { return a[5] == 1 && b[5] == 1; }));
  nearfield_heap_on_fork(nullptr);
  std::free(a);
  EXPECT_TRUE(child_succeeds([] {
    b[5] = 7;
    return true;
  }));
  EXPECT_EQ(const_cast<volatile char*>(b)[5], 1);
  std::free(b);
}

// The child returns from the handler into the call that it has interrupted, and goes on allocating.
TEST(ForkInAHandler, LetsTheChildGoOn) {
  static std::atomic<int> children, bad;
  static std::atomic<bool> in_child;
  static char* kept;
  children = bad = 0;
  in_child = false;
  kept = static_cast<char*>(std::malloc(100'000));
  std::memset(kept, 1, 100'000);
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int before = errno;
    if (in_child) return;
    const pid_t child = fork();
    if (child == 0) {
      in_child = true;
      alarm(20);
    } else {
      ++children;
      int status = 1;
      waitpid(child, &status, 0);
      bad += status != 0;
    }
    errno = before;
  };
  action.sa_flags = SA_RESTART;
  struct sigaction old;
  sigaction(SIGUSR1, &action, &old);
  const pthread_t here = pthread_self();
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    for (int i = 0; i < 200; ++i) {
      pthread_kill(here, SIGUSR1);
      usleep(1500);
    }
    stop = true;
  });
  struct Held {
    char* p;
    std::size_t bytes;
    char value;
  };
  std::vector<Held> held(5, Held{nullptr, 0, 0});
  auto good = [](const Held& h) { return !h.p || (h.p[0] == h.value && h.p[h.bytes - 1] == h.value); };
  for (unsigned i = 0, left = 60; !stop && left; ++i) {
    Held& h = held[i % 5];
    bad += !good(h);
    std::free(h.p);
    h = {static_cast<char*>(std::malloc(40'000 + i % 7 * 100'000)), 40'000 + i % 7 * 100'000, char(i)};
    h.p[0] = h.p[h.bytes - 1] = h.value;
    left -= in_child;
  }
  bool all = kept[99'999] == 1;
  for (const Held& h : held) all &= good(h);
  if (in_child) _exit(all && bad == 0 ? 0 : 1);
  sender.join();
  for (const Held& h : held) std::free(h.p);
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_TRUE(all);
  EXPECT_GT(children, 0);
  EXPECT_EQ(bad, 0);
  std::free(kept);
}

}  // namespace
