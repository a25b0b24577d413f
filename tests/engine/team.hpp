// Members of teams, without any MPI: the bootstrap is a shared page. They are forked processes, or threads of this one,
// each with a node of its own: under ThreadSanitizer, which sees of what processes share nothing.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/choosing/chooser.hpp"
#include "engine/choosing/tuned.hpp"
#include "engine/context/pool.hpp"
#include "engine/creation/create.hpp"
#include "tests/engine/child.hpp"

namespace nearfield::testing {

inline constexpr int most_processes = 256;

// How many times longer anything may take: under an emulator it does.
#ifdef NEARFIELD_TEST_PATIENCE
inline constexpr int patience = NEARFIELD_TEST_PATIENCE;
#else
inline constexpr int patience = 1;
#endif

// Of random rounds so many: sanitizers need less luck to see what is not ordered, or not there, but time.
constexpr int rounds_of(int all) {
#if defined __SANITIZE_THREAD__
  return all / 5;
#elif defined __SANITIZE_ADDRESS__
  return all / 3;
#else
  return all;
#endif
}

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

// What a member does; false: it fails.
using Body = std::function<bool(team::Process&, PageBootstrap&, int rank, int size)>;

inline std::unique_ptr<team::Process> make_node(const Settings& settings) {
  static const choosing::TeamServices services;
  auto process = team::Process::create(settings, services);
  if (!process) throw std::runtime_error(process.error().text);
  return std::move(*process);
}

// Runs `body` in `size` forked processes; the number of those that failed. A process fails by returning false, by a
// signal, or by outliving `seconds`, times patience. For what is about processes: deaths, what one has only once.
inline int run_processes(int size, int seconds, const Body& body, const Settings& settings = {}) {
  auto* page =
      static_cast<Page*>(mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(fork_child([&] {
      fail_after(unsigned(seconds * patience));
      PageBootstrap bootstrap(*page, rank, size);
      team::Process& process = *make_node(settings).release();  // it goes with its process
      const bool good = body(process, bootstrap, rank, size);
      process.leave();
      return good;
    }));
  }
  int failed = 0;
  for (const pid_t child : children) failed += end_of(child) != 0;
  munmap(page, sizeof(Page));
  return failed;
}

// By a member whose node is used by threads that do not end with it.
inline thread_local bool node_stays = false;

// The same in threads. One that outlives `seconds` ends the test.
inline int run_threads(int size, int seconds, const Body& body, const Settings& settings = {}) {
  // Segments of all members lie in one address space, of which a sanitizer leaves little.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{rlim_t{4} << 30, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limited);
  struct Member {
    std::unique_ptr<team::Process> process;
    std::atomic<bool> ended{false};
    bool good = false;
  };
  auto page = std::make_unique<Page>();
  std::vector<Member> members{std::size_t(size)};
  for (Member& member : members) member.process = make_node(settings);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank, &member = members[std::size_t(rank)]] {
      try {
        PageBootstrap bootstrap(*page, rank, size);
        member.good = body(*member.process, bootstrap, rank, size);
        member.process->leave();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "member %d: %s\n", rank, error.what());
      }
      if (node_stays) member.process.release();
      member.ended.store(true);
    });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds * patience);
  for (int rank = 0; rank < size; ++rank) {
    while (!members[std::size_t(rank)].ended.load()) {
      usleep(500);
      if (std::chrono::steady_clock::now() < until) continue;
      std::fprintf(stderr, "member %d of %d takes too long\n", rank, size);
      std::abort();
    }
    threads[std::size_t(rank)].join();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  int failed = 0;
  for (const Member& member : members) failed += !member.good;
  return failed;
}

// Either, as this build shows more. NEARFIELD_TEST_MEMBERS=threads or processes asks for one.
inline int run_members(int size, int seconds, const Body& body, const Settings& settings = {}) {
#ifdef __SANITIZE_THREAD__
  bool threads = true;
#else
  bool threads = false;
#endif
  if (const char* const asked = std::getenv("NEARFIELD_TEST_MEMBERS")) threads = std::string_view(asked) == "threads";
  return (threads ? run_threads : run_processes)(size, seconds, body, settings);
}

// Until it goes, trials go at that pace.
struct Pacing {
  explicit Pacing(const tuning::Pace& pace) : pace(pace), before(globals().pace.exchange(&this->pace)) {}
  ~Pacing() { globals().pace = before; }
  Pacing(const Pacing&) = delete;
  const tuning::Pace pace;
  const tuning::Pace* const before;
};

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
inline void run_out_of_memory(team::Process& process) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, process.segment().fd());
  close(nothing);
}

// Takes what the arena has already.
inline void use_up(team::Process& process) {
  for (std::size_t bytes = 1 << 20; bytes >= 64; bytes /= 2)
    while (process.arena().allocate(bytes, 64)) {
    }
}

}  // namespace nearfield::testing
