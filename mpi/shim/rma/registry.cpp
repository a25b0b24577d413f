#include <mutex>
#include <unordered_map>

#include "engine/base/made.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/launchers.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {

const PerThread<std::array<CachedWindow, cached_windows>, threads::at::windows> window_cache;

struct WindowRegistry {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::unique_ptr<OneSided>> all;  // by handle
  windows::HeldLocks held{0};
};

namespace {

WindowRegistry& registry() { return made<WindowRegistry>(); }

}  // namespace

OneSided* one_sided_slowly(MPI_Win win) {
  const auto bits = (std::uint64_t)win;
  const std::uint64_t epoch = window_epoch.load(std::memory_order_acquire);  // SYNC: window-epoch
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().all.find(bits);
  OneSided* const state = found == registry().all.end() ? nullptr : found->second.get();
  (*window_cache)[(bits ^ bits >> 8) % cached_windows] = {win, epoch, state};
  return state;
}

void adopt(std::unique_ptr<OneSided> state) {
  const std::lock_guard lock(registry().mutex);
  const auto bits = (std::uint64_t)state->win;
  registry().all[bits] = std::move(state);
  window_epoch.fetch_add(1, std::memory_order_acq_rel);  // SYNC: window-epoch
}

std::unique_ptr<OneSided> disown(MPI_Win win) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().all.find((std::uint64_t)win);
  if (found == registry().all.end()) return nullptr;
  std::unique_ptr<OneSided> state = std::move(found->second);
  registry().all.erase(found);
  window_epoch.fetch_add(1, std::memory_order_acq_rel);  // SYNC: window-epoch
  return state;
}

windows::HeldLocks& held_locks() { return registry().held; }

int raise_on(MPI_Win win, const char* function, const char* text, int code) {
  log_line(LogLevel::error, "%s: %s", function, text);
  let_launchers_forward(win, host.Win_get_errhandler);
  host.Win_call_errhandler(win, code);
  return code;
}

int raise_on(MPI_Win win, const char* function, const team::Broken& broken) {
  const int code = class_and_text(function, broken);
  let_launchers_forward(win, host.Win_get_errhandler);
  host.Win_call_errhandler(win, code);
  return code;
}

}  // namespace nearfield::mpi
