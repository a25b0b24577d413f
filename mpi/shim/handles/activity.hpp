// What a request stands for, as Wait, Test, Cancel, the status functions and Request_free see it. Messages that are
// more than one plain send or receive (p2p/activity.hpp), flushes of buffers and collectives implement it.
//
//   begin()  ->  under way  ->  completed()  ->  outcome(), status()  ->  gone, or at rest if it is persistent
//                           ->  abandon()         a wait has thrown
#pragma once
#include "engine/hang_report/call_post.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

class Activity {
 public:
  virtual ~Activity() = default;
  // Starts it, a persistent one again and again. Its error class; other than MPI_SUCCESS, it has not begun.
  virtual int begin() = 0;
  // Looks, and does what can be done at once.
  virtual bool completed() = 0;
  // Once it has completed: its error class. What it has brought is then where the program looks for it.
  virtual int outcome() = 0;
  virtual void status(MPI_Status* status) const = 0;  // after outcome()
  virtual void cancel() {}
  // Nothing of it is under way any more, or what is left goes on without it.
  virtual void abandon() = 0;
  // Whether that member of the messenger may have to do something for it, so that its death ends a wait.
  virtual bool involves(int member) const = 0;
  // Of messages in partitions that have begun, by any thread (messages/partitioned.cpp): marks [low, high] as ready;
  // tells whether one has arrived. An error class.
  virtual int ready(int /*low*/, int /*high*/) { return MPI_ERR_REQUEST; }
  virtual int arrived(int /*partition*/, bool& /*there*/) { return MPI_ERR_REQUEST; }
  // Whether others are in it who cannot be told that it has been given up: then its memory is kept for good.
  virtual bool stays() const { return false; }
  // Whether it is known to have completed; changes nothing.
  virtual bool finished() const { return false; }
  // The call that has made it, for reports.
  hang_report::Item told;
  // Whether others may still wait for it when the program has freed its request.
  virtual bool owed() const { return true; }
};

}  // namespace nearfield::mpi
