// Forked processes that form teams, without any MPI: the bootstrap is a shared page.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "engine/choosing/chooser.hpp"
#include "engine/track/tracks.hpp"
#include "tests/engine/child.hpp"

namespace nearfield::testing {

inline constexpr int most_processes = 16;

// How many times longer anything may take: under an emulator it does.
#ifdef NEARFIELD_TEST_PATIENCE
inline constexpr int patience = NEARFIELD_TEST_PATIENCE;
#else
inline constexpr int patience = 1;
#endif

struct Page {
  std::atomic<int> arrived;
  std::atomic<int> generation;
  char data[most_processes][1024];
};

class PageBootstrap : public team::Bootstrap {
 public:
  PageBootstrap(Page& page, int rank, int size) : page_(page), rank_(rank), size_(size) {}
  bool allgather(const void* mine, void* all, std::size_t bytes) override {
    std::memcpy(page_.data[rank_], mine, bytes);
    meet();
    for (int r = 0; r < size_; ++r) std::memcpy(static_cast<char*>(all) + std::size_t(r) * bytes, page_.data[r], bytes);
    meet();
    return true;
  }
  std::uint32_t all_and(std::uint32_t bits) override {
    std::uint32_t every[most_processes], result = ~0u;
    allgather(&bits, every, sizeof bits);
    for (int r = 0; r < size_; ++r) result &= every[r];
    return result;
  }
  void idle() override { sched_yield(); }
  void meet() {
    const int generation = page_.generation.load();
    if (page_.arrived.fetch_add(1) == size_ - 1) {
      page_.arrived.store(0);
      page_.generation.store(generation + 1);
    } else {
      while (page_.generation.load() == generation) sched_yield();
    }
  }

 private:
  Page& page_;
  int rank_, size_;
};

// Runs `body` in `size` forked processes; the number of those that failed. A process fails by returning false, by a
// signal, or by outliving `seconds`, times patience.
inline int run_processes(int size, int seconds,
                         const std::function<bool(team::Node&, PageBootstrap&, int rank, int size)>& body,
                         Settings settings = {}) {
  auto* page =
      static_cast<Page*>(mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(fork_child([&] {
      fail_after(unsigned(seconds * patience));
      PageBootstrap bootstrap(*page, rank, size);
      auto node = team::Node::create(settings);
      if (!node) throw std::runtime_error(node.error().text);
      team::Node& kept = **node;
      node->release();  // it goes with its process
      choosing::tell_teams(kept);
      const bool good = body(kept, bootstrap, rank, size);
      kept.leave();
      return good;
    }));
  }
  int failed = 0;
  for (const pid_t child : children) failed += end_of(child) != 0;
  munmap(page, sizeof(Page));
  return failed;
}

// Whether one process may read another's memory here: emulators and some containers do not let it.
inline bool cma_works() {
  const std::uint64_t word = 1;
  std::uint64_t seen = 0;
  const pid_t parent = getpid();
  return end_of(fork_child([&] {
           iovec here{&seen, sizeof seen}, there{const_cast<std::uint64_t*>(&word), sizeof word};
           return process_vm_readv(parent, &here, 1, &there, 1, 0) == ssize_t(sizeof seen);
         })) == 0;
}

// From here on the segment of this process gets no more memory: what is behind its descriptor cannot have any.
inline void run_out_of_memory(team::Node& node) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, node.segment().fd());
  close(nothing);
}

// Takes what the arena has already.
inline void use_up(team::Node& node) {
  for (std::size_t bytes = 1 << 20; bytes >= 64; bytes /= 2)
    while (node.arena().allocate(bytes, 64)) {
    }
}

}  // namespace nearfield::testing
