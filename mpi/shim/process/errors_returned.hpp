// While an ErrorsReturned exists, its communicator has the handler MPI_ERRORS_RETURN: the host may refuse a call that
// Nearfield makes, which must not end the job. Errors of other threads' calls on it are returned as well.
#pragma once
#include <mutex>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

class ErrorsReturned {
 public:
  explicit ErrorsReturned(MPI_Comm comm) : comm_(comm) {
    changed_ = host.Comm_get_errhandler(comm, &before_) == MPI_SUCCESS &&
               host.Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS;
  }
  // A handler that another thread has set meanwhile stays.
  ~ErrorsReturned() {
    if (!changed_) return;
    MPI_Errhandler now = MPI_ERRORS_RETURN;
    const bool known = host.Comm_get_errhandler(comm_, &now) == MPI_SUCCESS;
    if (now == MPI_ERRORS_RETURN) host.Comm_set_errhandler(comm_, before_);
    if (known) host.Errhandler_free(&now);
    host.Errhandler_free(&before_);
  }
  ErrorsReturned(const ErrorsReturned&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_{};
  bool changed_;
};

// For queries of the host that may fail: errors that belong to no communicator are raised on MPI_COMM_WORLD or
// MPI_COMM_SELF, depending on host and standard. One thread at a time has a guard, since each restores the handlers.
class ErrorHandlerGuard {
 public:
  ErrorHandlerGuard() : lock_(one_at_a_time_), world_(host.world), self_(host.self) {}

 private:
  static inline constinit std::mutex one_at_a_time_;
  const std::lock_guard<std::mutex> lock_;
  const ErrorsReturned world_, self_;
};

}  // namespace nearfield::mpi
