// What Nearfield keeps for a window that it serves. All others are the host's, wholly: which it is, all ranks of the
// window have agreed on when it was made (creating.cpp), since atomic operations of two sides would not be atomic.
//
// The host has a window of its own beneath, of the same memory: its handle is the program's, and names, groups,
// attributes, info, error handlers and the errors of wrong arguments are the host's. It never sees an epoch, so what
// the host is given by mistake ends as an error.
//
// A look-up asks a small cache per thread, then a table. Windows and hosts' handles are made and freed in calls that
// raise an epoch, by which caches know what is stale, also about windows that are not ours.
#pragma once
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/out_of_memory.hpp"
#include "engine/windows/window.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/host.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi {

// What a window was made of; of the last two the memory is ours, though the host has been told that the program has it.
enum class MadeOf : std::uint8_t { memory, allocated, shared };

struct OneSided {
  MPI_Win win{};
  std::unique_ptr<windows::Window> window;
  MPI_Group group{};           // of its communicator
  std::size_t allocation = 0;  // in the segment's arena; 0: none
  MadeOf made_of = MadeOf::memory;
};

struct CachedWindow {
  MPI_Win win;
  std::uint64_t epoch;
  OneSided* state;
};
inline constexpr unsigned cached_windows = 8;
extern const PerThread<std::array<CachedWindow, cached_windows>, threads::at::windows> window_cache;
extern std::atomic<std::uint64_t> window_epoch;  // pairs with the load in one_sided

OneSided* one_sided_slowly(MPI_Win win);
// Ours; nullptr: the host serves that window, or judges what it is.
inline OneSided* one_sided(MPI_Win win) {
  const auto bits = (std::uint64_t)win;
  const CachedWindow& cached = (*window_cache)[(bits ^ bits >> 8) % cached_windows];
  if (cached.win == win && cached.epoch == window_epoch.load(std::memory_order_acquire)) [[likely]]
    return cached.state;
  return one_sided_slowly(win);
}
void adopt(std::unique_ptr<OneSided> state);
std::unique_ptr<OneSided> disown(MPI_Win win);  // nullptr: not ours

// While it is alive the window is being freed.
class Freeing {
 public:
  explicit Freeing(const OneSided* state) : before_(std::exchange(inside->being_freed, state)) {}
  ~Freeing() { inside->being_freed = before_; }
  Freeing(const Freeing&) = delete;

 private:
  const OneSided* before_;
};

// Of every call that a program may repeat until it finds what another rank has stored: one of many looks after
// messages, the host, and other processes.
void note_look();

// Raises an error of class `code` through the window's error handler, with `text` reported.
int raise_on(MPI_Win win, const char* function, const char* text, int code);
int raise_on(MPI_Win win, const char* function, const team::Broken& broken);

// Runs `body`, a call on a window of ours; what goes wrong in a wait becomes an error of the window.
template <class Body>
int on_window(MPI_Win win, const char* function, Body body) {
  try {
    return body();
  } catch (const team::Broken& broken) {
    return raise_on(win, function, broken);
  } catch (const OutOfMemory&) {
    return raise_on(win, function, "out of memory", MPI_ERR_NO_MEM);
  }
}

}  // namespace nearfield::mpi
