// A collective call behind a request, whatever its form and whoever carries it.
//
//   MPI_Ixxx, MPI_Start   post()       begins it, and returns at once
//   Test, Wait            progress()   looks, and does what can be done at once, until complete()
//   the first of them     finalize()   what has come goes to where the program looks for it
//
// A Work says how: a team's (engine/team_work.hpp) or messages' (vector/exchange.hpp). A blocking call has what a Work
// consists of on its stack and waits in place: it has no task.
//
//   int post()                     an error class; other than MPI_SUCCESS, it has not begun
//   void progress()
//   bool complete() const
//   int finalize()                 an error class. pre: complete()
//   void abandon()                 a wait has thrown
//   bool involves(int) const       as Activity::involves
//   bool stays() const             as Activity::stays
#pragma once
#include <utility>

#include "mpi/shim/handles/activity.hpp"
#include "mpi/shim/handles/statuses.hpp"

namespace nearfield::mpi {

// What a call needs beside its buffers as the program gives them: what stands for those, or is to be done with what has
// come, by whoever completes it.
struct StagingBuffers {
  virtual ~StagingBuffers() = default;
  virtual int fetch() { return MPI_SUCCESS; }  // before it begins. An error class
  virtual int store() = 0;                     // once it is complete. An error class
};

template <class Work>
class CollectiveTask final : public Activity {
 public:
  template <class... Arguments>
  explicit CollectiveTask(Arguments&&... arguments) : work(std::forward<Arguments>(arguments)...) {}

  int begin() override {
    finalized_ = false;
    return work.post();
  }
  bool completed() override {
    if (work.complete()) return true;
    work.progress();
    return work.complete();
  }
  bool finished() const override { return work.complete(); }
  int outcome() override {
    if (!work.complete()) return MPI_ERR_OTHER;  // given up by who waited for it
    if (!std::exchange(finalized_, true)) code_ = work.finalize();
    return code_;
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override { work.abandon(); }
  bool involves(int member) const override { return work.involves(member); }
  bool stays() const override { return work.stays(); }

  Work work;

 private:
  bool finalized_ = false;
  int code_ = MPI_SUCCESS;
};

}  // namespace nearfield::mpi
