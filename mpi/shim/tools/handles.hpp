// The host's sessions that tools have opened, and the handles of Nearfield's variables in them: odd numbers that are
// never used again, so no freed handle is taken for one of the host's, which are aligned pointers. Thread-safe.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "mpi/shim/tools/performance_variables.hpp"

namespace nearfield::mpi::tools {

class Handles {
 public:
  struct Found {
    bool ours = false;
    int code = MPI_SUCCESS;  // an error if the session or the handle is not open
    const PerformanceVariable* variable = nullptr;
  };

  // Raises std::bad_alloc.
  void open(MPI_T_pvar_session session) {
    const std::lock_guard lock(mutex_);
    sessions_.insert(session);
  }
  // Closes a session and frees its handles. Returns whether it was open.
  bool close(MPI_T_pvar_session session) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [&](const auto& each) { return each.second.session == session; });
    return sessions_.erase(session) != 0;
  }
  void close_all() {
    const std::lock_guard lock(mutex_);
    open_.clear();
    sessions_.clear();
  }
  bool has(MPI_T_pvar_session session) const {
    const std::lock_guard lock(mutex_);
    return sessions_.contains(session);
  }

  // Raises std::bad_alloc.
  MPI_T_pvar_handle make(MPI_T_pvar_session session, const PerformanceVariable& variable) {
    const std::lock_guard lock(mutex_);
    open_[next_] = {session, &variable};
    return reinterpret_cast<MPI_T_pvar_handle>(std::exchange(next_, next_ + 2));
  }
  Found find(MPI_T_pvar_session session, MPI_T_pvar_handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number % 2 == 0 || number < first || number >= next_) return {};
    if (!sessions_.contains(session)) return {true, MPI_T_ERR_INVALID_SESSION};
    const auto at = open_.find(number);
    if (at == open_.end() || at->second.session != session) return {true, MPI_T_ERR_INVALID_HANDLE};
    return {true, MPI_SUCCESS, at->second.variable};
  }
  void release(MPI_T_pvar_handle handle) {
    const std::lock_guard lock(mutex_);
    open_.erase(reinterpret_cast<std::uintptr_t>(handle));
  }

 private:
  static constexpr std::uintptr_t first = 0x10001;  // no constant of MPI lies between this and `next_`
  struct Open {
    MPI_T_pvar_session session;
    const PerformanceVariable* variable;
  };
  mutable std::mutex mutex_;
  std::set<MPI_T_pvar_session> sessions_;
  std::map<std::uintptr_t, Open> open_;
  std::uintptr_t next_ = first;
};

}  // namespace nearfield::mpi::tools
