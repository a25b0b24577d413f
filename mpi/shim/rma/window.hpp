// State of a window that Nearfield serves. The host serves all others entirely. All ranks agree on that when the window
// is made (creating.cpp), since atomic operations of two implementations would not be atomic to each other.
//
// The host has a window of the same memory: the program uses its handle, and names, groups, attributes, info, error
// handlers and errors of wrong arguments are the host's. The host never sees an epoch, so an operation that reaches it
// by mistake is an error.
//
// A look-up uses a small cache per thread, then a table. The cache also knows windows that the host serves. Whenever
// the table changes, `window_epoch` is raised, which invalidates all caches.
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

// How the program has made a window. In the last two cases its memory is in our segment, and the host has made the
// window by MPI_Win_create.
enum class MadeOf : std::uint8_t { memory, allocated, shared };

struct OneSided {
  MPI_Win win{};
  std::unique_ptr<windows::Window> window;
  MPI_Group group{};           // the communicator's
  std::size_t allocation = 0;  // offset in the segment's arena; 0: none
  MadeOf made_of = MadeOf::memory;
};

struct CachedWindow {
  MPI_Win win;
  std::uint64_t epoch;
  OneSided* state;
};
inline constexpr unsigned cached_windows = 8;
extern const PerThread<std::array<CachedWindow, cached_windows>, threads::at::windows> window_cache;
inline constinit std::atomic<std::uint64_t> window_epoch{1};

OneSided* one_sided_slowly(MPI_Win win);
// Returns our state; nullptr: the host serves the window, or the handle is invalid.
inline OneSided* one_sided(MPI_Win win) {
  const auto bits = (std::uint64_t)win;
  const CachedWindow& cached = (*window_cache)[(bits ^ bits >> 8) % cached_windows];
  // SYNC: window-epoch
  if (cached.win == win && cached.epoch == window_epoch.load(std::memory_order_acquire)) [[likely]]
    return cached.state;
  return one_sided_slowly(win);
}
void adopt(std::unique_ptr<OneSided> state);
std::unique_ptr<OneSided> disown(MPI_Win win);  // nullptr: not ours
windows::HeldLocks& held_locks();               // of this process

// Scope in which the window is being freed.
class Freeing {
 public:
  explicit Freeing(const OneSided* state) : before_(std::exchange(inside->being_freed, state)) {}
  ~Freeing() { inside->being_freed = before_; }
  Freeing(const Freeing&) = delete;

 private:
  const OneSided* before_;
};

// Every call that a program may repeat until another rank has stored something calls this; now and then it makes
// progress for messages and the host, and yields to other processes.
void note_look();

// Raises an error of class `code` through the window's error handler, with `text` reported.
int raise_on(MPI_Win win, const char* function, const char* text, int code);
int raise_on(MPI_Win win, const char* function, const team::Broken& broken);

// Runs `body`, a call on one of our windows; exceptions become errors of the window.
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
