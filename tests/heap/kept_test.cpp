// Memory that must stay the parent's own at a fork (heap/kept.hpp): what a device or the kernel sees afterwards, and
// what children do.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "heap/heap.hpp"
#include "tests/heap/helpers.hpp"
#include "tests/heap/pinned.h"

using namespace nearfield::heap::testing;

extern "C" {
extern int registrations;
int cudaHostRegister(void* at, std::size_t bytes, unsigned flags);
int cudaHostUnregister(void* at);
void* ibv_reg_mr(void* domain, void* at, std::size_t bytes, int access);
int ibv_dereg_mr(void* region);
}

namespace {

constexpr std::size_t mib = 1 << 20;

// A block of the heap, filled with 'a', and what its file has: a peer or a device sees the file's pages.
struct Block {
  explicit Block(std::size_t length = mib) : bytes(length), at(static_cast<char*>(std::malloc(length))) {
    std::memset(at, 'a', bytes);
    nearfield_heap_view view;
    EXPECT_EQ(0, nearfield_heap_current(&view));
    file = nearfield_heap_descriptor(view.generation);
    offset = at - static_cast<char*>(view.base);
  }
  ~Block() {
    close(file);
    std::free(at);
  }
  char in_file(std::size_t i = 0) const {
    char byte = 0;
    EXPECT_EQ(1, pread(file, &byte, 1, offset + off_t(i)));
    return byte;
  }
  const std::size_t bytes;
  char* const at;
  int file;
  off_t offset;
};

// Forks, and stores to the block in the parent; the child must go on seeing what was there.
void fork_and_store(const Block& block, char before, char value) {
  int go[2];
  ASSERT_EQ(0, pipe(go));
  const pid_t child = fork();
  if (child == 0) {
    char token;
    close(go[1]);
    (void)!read(go[0], &token, 1);
    const bool good = block.at[0] == before && block.at[block.bytes - 1] == before;
    std::memset(block.at, 'c', block.bytes);
    _exit(good ? 0 : 1);
  }
  std::memset(block.at, value, block.bytes);
  close(go[0]), close(go[1]);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status) << "the child sees stores of its parent";
  EXPECT_EQ(value, block.at[7]) << "the parent sees stores of its child";
}

// No function has told of the pin here, so a fork keeps all blocks, but not the stack that the child goes on with.
TEST(Kept, AThreadOnABlockMayForkWhateverIsPinned) {
  Block block, stack;
  pinned buffer;
  if (pin(&buffer, block.at, block.bytes)) GTEST_SKIP() << "the kernel has no io_uring for this process";
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(0, pthread_attr_setstack(&attributes, stack.at, stack.bytes));
  std::atomic<int> done = 0;  // joined late, since the thread forks on its stack
  pthread_t thread;
  const auto run = [](void* at) -> void* {
    const bool good = child_succeeds([] { return true; });
    static_cast<std::atomic<int>*>(at)->store(good ? 1 : 2);
    return nullptr;
  };
  ASSERT_EQ(0, pthread_create(&thread, &attributes, run, &done));
  for (int i = 0; i < 1000 && !done; ++i) usleep(10'000);
  EXPECT_EQ(1, done);
  usleep(50'000);
  pthread_detach(thread);
  pthread_attr_destroy(&attributes);
  std::memset(block.at, 'b', block.bytes);
  EXPECT_EQ('b', seen_by_kernel(&buffer));
  unpin(&buffer);
  for (int i = 0; i < 500 && status_bytes("VmPin"); ++i) usleep(10'000);
}

TEST(Kept, RegistrationsLastUntilTheyEnd) {
  Block block, other;
  ASSERT_EQ(0, cudaHostRegister(block.at + 100, mib / 2, 0));
  void* const region = ibv_reg_mr(nullptr, other.at, other.bytes, 0);
  ASSERT_TRUE(region);
  ASSERT_EQ(2, registrations) << "the library's own functions were called";
  fork_and_store(block, 'a', 'b');
  EXPECT_EQ('b', block.in_file()) << "registered pages were taken from the device";
  EXPECT_NE('b', block.in_file(mib - 1)) << "more was kept than had been registered";
  std::memset(other.at, 'b', other.bytes);
  EXPECT_EQ('b', other.in_file());
  EXPECT_EQ(0, cudaHostUnregister(block.at + 100));
  EXPECT_EQ(0, ibv_dereg_mr(region));
  fork_and_store(block, 'b', 'c');
  EXPECT_NE('c', block.in_file()) << "what is registered no more was kept";
}

TEST(Kept, MarksSayWhatChildrenFind) {
  Block wiped, absent;
  ASSERT_EQ(0, madvise(wiped.at, mib, MADV_WIPEONFORK));
  ASSERT_EQ(0, madvise(absent.at, mib, MADV_DONTFORK));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(child_succeeds([&] {
      for (std::size_t i = 0; i < mib; ++i)
        if (wiped.at[i]) return false;
      std::memset(wiped.at, 'x', mib);
      // The mark is inherited.
      return child_succeeds([&] { return wiped.at[0] == 0 && wiped.at[mib - 1] == 0; });
    }));
    EXPECT_EQ('a', wiped.at[0]);
    EXPECT_FALSE(child_succeeds([&] {
      signal(SIGSEGV, [](int) { _exit(3); });
      return absent.at[0] == 'a';
    }));
    EXPECT_EQ('a', absent.at[mib - 1]);
  }
  ASSERT_EQ(0, madvise(wiped.at, mib, MADV_KEEPONFORK));
  ASSERT_EQ(0, madvise(absent.at, mib, MADV_DOFORK));
  EXPECT_TRUE(child_succeeds([&] { return wiped.at[mib - 1] == 'a' && absent.at[mib - 1] == 'a'; }));
}

TEST(Kept, MarksEndWithTheBlock) {
  char* const first = static_cast<char*>(std::malloc(mib));
  ASSERT_EQ(0, madvise(first, mib, MADV_DONTFORK));
  const auto place = reinterpret_cast<std::uintptr_t>(first);
  std::free(first);
  char* const second = static_cast<char*>(std::malloc(mib));
  ASSERT_EQ(place, reinterpret_cast<std::uintptr_t>(second));
  std::memset(second, 'a', mib);
  EXPECT_TRUE(child_succeeds([&] { return second[mib - 1] == 'a'; }));
  std::free(second);
}

// Of the region that allocations come from, and of an earlier one.
TEST(Kept, MarksAndLocksEndWhereSomethingElseIsMapped) {
  Block block, earlier;
  madvise(earlier.at, mib, MADV_WIPEONFORK);
  EXPECT_TRUE(child_succeeds([] { return true; }));
  Block current;
  ASSERT_EQ(0, madvise(current.at, mib, MADV_WIPEONFORK));
  ASSERT_EQ(0, madvise(block.at, mib, MADV_DONTFORK));
  for (const Block* each : {&block, &earlier, &current}) {
    ASSERT_EQ(each->at, mmap(each->at, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    std::memset(each->at, 'z', mib);
    EXPECT_TRUE(child_succeeds([&] { return each->at[0] == 'z' && each->at[mib - 1] == 'z'; }));
  }
}

// The first blocks are freed meanwhile, and others take their places in the table.
TEST(Kept, FilesOfRetiredRegionsStayFewWhereSomeAreFreed) {
  std::vector<char*> blocks;
  const std::size_t files = open_files();
  for (std::size_t i = 0; i < 200; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(64 << 10)));
    std::memset(blocks.back(), 'a', 64 << 10);
    EXPECT_TRUE(child_succeeds([] { return true; }));
    if (i >= 100) std::free(blocks[(i - 100) * 7 % 100]);
  }
  EXPECT_LE(open_files(), files + 80);
  for (std::size_t i = 100; i < blocks.size(); ++i) std::free(blocks[i]);
}

TEST(Kept, AForkNeedsNoDescriptor) {
  Block block;
  std::vector<int> taken;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {open_files() + 8, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
  EXPECT_TRUE(child_succeeds([&] { return block.at[5] == 'a'; }));
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
}

// As UCX loads its plugins: the function behind ours is in the scope of the library alone.
TEST(Kept, RegistrationsReachALibraryThatIsLoadedPrivately) {
  const Block block;
  void* const library = dlopen(PRIVATE_REGISTRATIONS, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  const auto registers = reinterpret_cast<void* (*)(void*, std::size_t)>(dlsym(library, "register_privately"));
  int* const count = static_cast<int*>(dlsym(library, "privately_registered"));
  EXPECT_EQ(count, registers(block.at, block.bytes));
  EXPECT_EQ(1, *count);
  ibv_dereg_mr(count);
  dlclose(library);
}

}  // namespace
