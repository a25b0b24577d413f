// A collective call behind a request, whatever its form and whoever carries it.
//
//   MPI_Ixxx, MPI_Start   post()       begins the call, and returns at once
//   Test, Wait            progress()   progresses it without waiting, until complete()
//   the first of them     finalize()   stores the result in the program's buffers
//       that finds it complete
//
// The template parameter Work serves the call: with a team (engine/team_work.hpp) or with messages
// (vector/exchange.hpp). A blocking call has no task: it keeps on its stack what a Work consists of, and waits in
// place. A Work has:
//
//   int post()                     returns an error class; if that is not MPI_SUCCESS, the call has not begun
//   void progress()
//   bool complete() const
//   int finalize()                 returns an error class. pre: complete()
//   void abandon()                 called after a wait has thrown
//   bool goes_on_without(int)      as Activity::goes_on_without
//   bool involves(int) const       as Activity::involves
//   bool stays() const             as Activity::stays
#pragma once
#include <utility>

#include "mpi/shim/handles/activity.hpp"
#include "mpi/shim/handles/statuses.hpp"

namespace nearfield::mpi {

// Buffers that a call uses in place of the program's. fetch() copies the program's data before the call begins, store()
// copies results to the program when it is complete. They return an error class.
struct StagingBuffers {
  virtual ~StagingBuffers() = default;
  virtual int fetch() { return MPI_SUCCESS; }
  virtual int store() = 0;
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
    if (!work.complete()) return MPI_ERR_OTHER;                   // a wait for it has thrown
    if (!finalized_) code_ = work.finalize(), finalized_ = true;  // it may throw
    return code_;
  }
  void status(MPI_Status* status) const override { set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false); }
  void abandon() override { work.abandon(); }
  bool goes_on_without(int member) override { return work.goes_on_without(member); }
  bool involves(int member) const override { return work.involves(member); }
  bool stays() const override { return work.stays(); }

  Work work;

 private:
  bool finalized_ = false;
  int code_ = MPI_SUCCESS;
};

}  // namespace nearfield::mpi
