// Interface of requests that are no plain send or receive, for Wait, Test, Cancel, the status functions and
// Request_free. Other messages (p2p/activity.hpp), flushes of buffers and collectives implement it.
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
  // Starts it, a persistent one repeatedly. Returns an error class; if not MPI_SUCCESS, it has not begun.
  virtual int begin() = 0;
  // Does what can be done at once. Returns whether it has completed.
  virtual bool completed() = 0;
  // pre: completed(). Returns its error class; received data are in the program's buffers then.
  virtual int outcome() = 0;
  virtual void status(MPI_Status* status) const = 0;  // pre: outcome() has been called
  virtual void cancel() {}
  // Called after a wait has thrown: detaches it from operations that are still under way.
  virtual void abandon() = 0;
  // Returns whether it may need that member of the messenger, whose death then ends a wait.
  virtual bool involves(int member) const = 0;
  // Returns whether it may be met by anybody: a death does not end it then (MPI_ERR_PROC_FAILED_PENDING).
  virtual bool from_anybody() const { return false; }
  // For partitioned messages that have begun (p2p/partitioned.cpp), by any thread: mark [low, high] as ready; say
  // whether one has arrived. Return an error class.
  virtual int ready(int /*low*/, int /*high*/) { return MPI_ERR_REQUEST; }
  virtual int arrived(int /*partition*/, bool& /*there*/) { return MPI_ERR_REQUEST; }
  // Returns whether others are in it who cannot be told that it has been given up: then its memory is kept for good.
  virtual bool stays() const { return false; }
  // Returns whether it is known to have completed; changes nothing.
  virtual bool finished() const { return false; }
  // The call that has made it, for hang reports.
  hang_report::Item item;
  // Returns whether other ranks may still need it after the program has freed its request.
  virtual bool owed() const { return true; }
};

}  // namespace nearfield::mpi
