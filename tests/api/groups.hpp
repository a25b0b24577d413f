// Processes that join groups by a shared page, for tests of the C API.
#pragma once
#include <nearfield.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/engine/child.hpp"

namespace nearfield::testing {

inline constexpr int most_members = 16;

struct MeetingPage {
  std::atomic<int> arrived, generation;
  char data[most_members][1024];
};

struct Member {
  MeetingPage* page;
  int rank, size;
};

// nf_exchange for members that share a page.
inline int exchange_by_page(void* context, const void* mine, void* all, std::size_t bytes) {
  auto& [page, rank, size] = *static_cast<Member*>(context);
  const auto meet = [&] {
    const int generation = page->generation.load();
    if (page->arrived.fetch_add(1) == size - 1) {
      page->arrived.store(0);
      page->generation.store(generation + 1);
      return;
    }
    while (page->generation.load() == generation) sched_yield();
  };
  if (bytes > sizeof page->data[0]) return 1;
  std::memcpy(page->data[rank], mine, bytes);
  meet();
  for (int r = 0; r < size; ++r) std::memcpy(static_cast<char*>(all) + std::size_t(r) * bytes, page->data[r], bytes);
  meet();
  return 0;
}

inline bool good(int status, const char* what, int line) {
  if (status == NF_OK) return true;
  std::fprintf(stderr, "line %d: %s: %s: %s\n", line, what, nf_status_name(status), nf_error_text());
  return false;
}
#define GOOD(call)                                           \
  do {                                                       \
    if (!testing::good(call, #call, __LINE__)) return false; \
  } while (0)
#define HOLDS(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      return false;                                                              \
    }                                                                            \
  } while (0)

using Body = std::function<bool(nf_group* group, int rank, int size)>;

// How many of `size` forked processes that have joined a group fail: by returning false, by a signal, or by outliving
// `seconds`.
inline int run_group(int size, const Body& body, unsigned seconds = 60) {
  void* const memory = mmap(nullptr, sizeof(MeetingPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank)
    children.push_back(fork_child([&]() -> bool {
      fail_after(seconds);
      Member member{static_cast<MeetingPage*>(memory), rank, size};
      nf_group* group = nullptr;
      GOOD(nf_join(rank, size, exchange_by_page, &member, &group));
      if (!body(group, rank, size)) return false;
      GOOD(nf_close(group));
      return true;
    }));
  int failed = 0;
  for (const pid_t child : children) failed += end_of(child) != 0;
  munmap(memory, sizeof(MeetingPage));
  return failed;
}

}  // namespace nearfield::testing
