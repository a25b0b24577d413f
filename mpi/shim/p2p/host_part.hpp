// The host's requests of an array that has requests of ours as well: a copy, since the host must not see ours (law 2 of
// docs/dev/architecture.md). It is written back after every call of the host on it. Arrays of up to 64 requests need no
// memory; for longer ones it is allocated before any request is completed, so that a failure changes nothing.
#pragma once
#include <memory>

#include "mpi/shim/p2p/completing.hpp"

namespace nearfield::mpi {

// Tests the requests that MPI_Waitall waits for: one by one if MPI_Testall of the host may fail. `next`: how many of
// the first ones have been found complete; updated.
int test_for_waitall(int count, MPI_Request* requests, int& next, int& flag, MPI_Status* statuses);

class HostPart {
 public:
  HostPart(int count, MPI_Request* requests)
      : requests_(requests), place_(count), which_(count), part_(count), status_(count) {
    for (int i = 0; i < count; ++i) {
      if (is_own(requests[i]) || requests[i] == host.request_null) continue;
      place_[count_] = i;
      part_[count_++] = requests[i];
    }
    note_host_request();
  }

  // Return whether all are complete, or the host has returned an error, code(). Then finish_next() is called for each.
  bool test_all() {
    done_ = 1;
    code_ = host.Testall(count_, part_.data(), &done_, status_.data());
    return is_done();
  }
  bool test_for_waitall() {
    if (!done_) code_ = mpi::test_for_waitall(count_, part_.data(), next_, done_, status_.data());
    return is_done();
  }
  bool done() const { return done_; }
  bool is_next(int i) const { return finished_ < count_ && place_[finished_] == i; }
  void finish_next(Outcomes& outcomes) { outcomes.add_of_host(status_[finished_++], code_); }
  int code() const { return code_; }

  // Returns whether one is complete, which sets *index, or `code` is an error. `active`: set if any is under way.
  bool test_any(int* index, MPI_Status* status, int& code, bool& active) {
    int flag = 0, which = MPI_UNDEFINED;
    code = host.Testany(count_, part_.data(), &which, &flag, status);
    write_back();
    active |= !flag;
    if (code == MPI_SUCCESS && (!flag || which == MPI_UNDEFINED)) return false;
    *index = which == MPI_UNDEFINED ? which : place_[which];
    return true;
  }
  // Finishes all that are complete. `active`: set if any was under way.
  int test_some(int* indices, Outcomes& outcomes, bool& active) {
    int some = 0;
    const int code = host.Testsome(count_, part_.data(), &some, which_.data(), status_.data());
    write_back();
    active |= some != MPI_UNDEFINED;
    for (int k = 0; k < some && some != MPI_UNDEFINED; ++k) {
      indices[outcomes.count()] = place_[which_[k]];
      outcomes.add_of_host(status_[k], code);
    }
    return code;
  }

 private:
  // On the stack for short arrays.
  template <class T>
  class Scratch {
   public:
    explicit Scratch(int count) : long_(count > short_array ? new T[std::size_t(count)] : nullptr) {}
    T* data() { return long_ ? long_.get() : short_; }
    T& operator[](int i) { return data()[i]; }
    const T& operator[](int i) const { return long_ ? long_[std::size_t(i)] : short_[i]; }

   private:
    static constexpr int short_array = 64;
    std::unique_ptr<T[]> long_;
    T short_[short_array];
  };

  bool is_done() {
    write_back();
    done_ |= code_ != MPI_SUCCESS;
    return done_;
  }
  void write_back() {
    for (int k = 0; k < count_; ++k) requests_[place_[k]] = part_[k];
  }

  MPI_Request* requests_;
  int count_ = 0, next_ = 0, done_ = 0, finished_ = 0, code_ = MPI_SUCCESS;
  Scratch<int> place_, which_;
  Scratch<MPI_Request> part_;
  Scratch<MPI_Status> status_;
};

}  // namespace nearfield::mpi
