// Members that share a window.
#pragma once
#include <atomic>
#include <memory>
#include <random>
#include <string>

#include "engine/windows/window.hpp"
#include "tests/engine/team.hpp"

namespace nearfield::testing {

#ifdef NEARFIELD_TEST_PATIENCE
inline constexpr int sizes[] = {1, 2, 3};
#else
inline constexpr int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
#endif
inline constexpr int seconds = 60;  // that a process may take

// Chance, the same on all members that take the same seed.
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed * 7919 + 1) {}
  unsigned below(unsigned limit) { return unsigned(random_() % limit); }
  // Mostly none, now and then so long that others come first.
  void delay() {
    const unsigned which = below(256);
    if (which < 8) sched_yield();
    if (which == 9) usleep(below(200));
  }

 private:
  std::mt19937 random_;
};

// Of the member whose thread or process this is.
inline thread_local windows::HeldLocks held_locks{0};

// A window of `bytes` zero bytes of each member, in its segment. nullptr: refused.
inline std::unique_ptr<windows::Window> make_window(team::Process& process, PageBootstrap& bootstrap, int rank,
                                                    int size, std::size_t bytes) {
  auto team = creation::create_team(process, rank, size, bootstrap);
  if (!team) return nullptr;
  auto memory = process.arena().allocate_zeroed(bytes, 4096);
  if (!memory) return nullptr;
  std::string why;
  using windows::Window;
  return Window::create(std::move(*team), held_locks, Window::Lies::in_segment,
                        {process.segment().base() + *memory, bytes, 1}, {}, why);
}

inline void close(std::unique_ptr<windows::Window> window, PageBootstrap& bootstrap) {
  window->meet();
  windows::Window::close(std::move(window));
  bootstrap.meet();
}

// How many of `size` members fail, of which each runs `body(window, node, chance)`.
template <class Body>
int run_windows(int size, std::size_t bytes, Body body) {
  return run_members(size, seconds, [&](team::Process& process, PageBootstrap& bootstrap, int rank, int size) {
    auto window = make_window(process, bootstrap, rank, size, bytes);
    if (!window) return false;
    Chance chance(unsigned(rank) + 100);
    const bool good = body(*window, process, chance);
    close(std::move(window), bootstrap);
    return good;
  });
}

inline volatile std::uint64_t& word(const windows::Window& window, int member, std::size_t i = 0) {
  return reinterpret_cast<volatile std::uint64_t*>(window.memory(member).base)[i];
}
inline std::atomic_ref<std::uint64_t> shared_word(const windows::Window& window, int member, std::size_t i = 0) {
  return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(window.memory(member).base)[i]);
}

}  // namespace nearfield::testing
