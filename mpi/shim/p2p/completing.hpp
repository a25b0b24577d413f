// Completes requests, and collects the error classes of several. One thread at a time completes a request, as MPI
// requires of the program. If several requests fail, one error is raised, on the communicator of the first of them.
#pragma once
#include <utility>

#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

// Takes the status of a complete request and frees it, unless it is persistent. Returns its error class.
int finish_slowly(MPI_Request* request, MPI_Status* status);
[[gnu::always_inline]] inline int finish(MPI_Request* request, MPI_Status* status) {
  if (*request == sent_at_once.load(std::memory_order_relaxed)) {
    *request = host.request_null;
    set_sent_status(status);
    return MPI_SUCCESS;
  }
  UserRequest* const user = own(*request);
  if (user->activity) [[unlikely]]
    return finish_slowly(request, status);
  *request = host.request_null;
  set_status(status, user->request);
  const int code = outcome(user->request);
  user->active = false;
  free_request(user);
  return code;
}

// Statuses and error classes of requests that are completed one after the other. If none fails, MPI_ERROR of the
// statuses is written only for MPI_Waitall (`all`): hosts set it there, and programs read it.
class Outcomes {
 public:
  explicit Outcomes(MPI_Status* statuses, bool all = false) : statuses_(statuses), kept_(all) {}
  MPI_Status* status() const { return nth(statuses_, n_); }  // of the next request
  void add(int code, MPI_Comm comm) {
    if (code != MPI_SUCCESS && !bad_) [[unlikely]]
      begin(comm);
    if (kept_ && statuses_ != MPI_STATUSES_IGNORE) statuses_[n_].MPI_ERROR = code;
    ++n_;
  }
  // Adds a request of the host, which has reported `code` for all that it has completed.
  void add_of_host(const MPI_Status& status, int code) {
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[n_] = status;
    add(code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS, host.world);
  }
  int count() const { return n_; }
  // Returns the host's error code if there is one, since the host has raised it. Otherwise raises and returns
  // MPI_ERR_IN_STATUS if a request has failed.
  int report(int of_host = MPI_SUCCESS) const {
    if (of_host != MPI_SUCCESS) return of_host;
    return bad_ ? raise_code(comm_, MPI_ERR_IN_STATUS) : MPI_SUCCESS;
  }

 private:
  void begin(MPI_Comm comm) {
    bad_ = true;
    comm_ = comm;
    if (std::exchange(kept_, true)) return;
    for (int i = 0; i < n_ && statuses_ != MPI_STATUSES_IGNORE; ++i) statuses_[i].MPI_ERROR = MPI_SUCCESS;
  }
  MPI_Status* statuses_;
  MPI_Comm comm_{};
  int n_ = 0;
  bool bad_ = false, kept_;
};

}  // namespace nearfield::mpi
