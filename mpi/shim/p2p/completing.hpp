// Parts of Wait and Test that completing.cpp (arrays of one kind) and mixed.cpp (arrays of both kinds) share. One
// thread at a time completes a request, as MPI requires of the program. Errors of several are reported once, to the
// handler of the first.
#pragma once
#include <utility>

#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

// Called after a wait has thrown: takes the request out of all operations.
void abandon(UserRequest& user);

// Tests the host's part of a Waitall. MPI_Testall of MPICH (5.0.2) and Intel MPI fails once a partitioned request is
// complete, so if there are such requests each is tested separately, in order: `next` of them are complete.
inline constinit std::atomic<bool> host_partitioned{false};  // the host has made any
int test_for_waitall(int count, MPI_Request* requests, int& next, int& flag, MPI_Status* statuses);

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

// Error classes of requests that are completed one after the other. Without errors MPI_ERROR of the statuses is not
// written, except in MPI_Waitall (`all`): hosts set it there, and programs read it.
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
  int count() const { return n_; }
  // Returns MPI_SUCCESS, or reports MPI_ERR_IN_STATUS through the error handler of the first that failed.
  int report() const { return bad_ ? raise_code(comm_, MPI_ERR_IN_STATUS) : MPI_SUCCESS; }

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

// A call that tests once: `look(code)` returns true if it has completed something, or if there is nothing to complete.
template <class Look>
int look_once(int count, const MPI_Request* requests, Look look) {
  int code = MPI_SUCCESS;
  poll_ours();
  if (!look(code) && progress_others(count, requests, code)) look(code);
  return code;
}

// Waits for some of an array. Those that need a process that dies end by that error, as for calls that test.
template <class Done, class Involves>
int wait_for_living(int count, const MPI_Request* requests, Done done, Involves involves, FunctionRef<void()> also,
                    const char* doing) {
  for (int code = MPI_SUCCESS;;) try {
      wait_ours(done, involves, also, doing);
      return MPI_SUCCESS;
    } catch (const team::Died&) {
      if (end_dead(count, requests, code)) continue;
      if (code == MPI_SUCCESS) throw;
      return code;
    }
}

// mixed.cpp
int waitall_mixed(int count, MPI_Request* requests, MPI_Status* statuses);
int testall_mixed(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);
int waitany_mixed(int count, MPI_Request* requests, int* index, MPI_Status* status);
int testany_mixed(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int waitsome_mixed(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses);
int testsome_mixed(int count, MPI_Request* requests, int* out, int* indices, MPI_Status* statuses);

}  // namespace nearfield::mpi
