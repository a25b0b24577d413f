// The operation behind a request that is no plain send or receive, as Wait, Test, Cancel, the status functions and
// Request_free see it. Other messages (p2p/activity.hpp), flushes of buffers and collectives implement this interface.
//
//   begin()  ->  under way  ->  completed()  ->  outcome(), status()  ->  destroyed, or inactive if it is persistent
//                           ->  abandon()         if a wait has thrown
#pragma once
#include "engine/hang_report/call_post.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi {

class Activity {
 public:
  virtual ~Activity() = default;
  // Starts the operation, a persistent one repeatedly. Returns an error class; if not MPI_SUCCESS, it has not begun.
  virtual int begin() = 0;
  // Progresses the operation without waiting. Returns whether it has completed.
  virtual bool completed() = 0;
  // pre: completed(). Stores received data in the program's buffers and returns the error class of the operation.
  virtual int outcome() = 0;
  virtual void status(MPI_Status* status) const = 0;  // pre: outcome() has been called
  virtual void cancel() {}
  // Called after a wait has thrown: detaches the object from operations of the engine that are still under way.
  virtual void abandon() = 0;
  // That member of the messenger has died, and the operation needs it. Ends the operation, or only what is under way
  // with that member: then returns true, and outcome() will be that error once the rest has completed.
  virtual bool goes_on_without(int /*member*/) {
    abandon();
    return false;
  }
  // Returns whether the operation may need that member of the messenger, so that the member's death ends a wait for it.
  virtual bool involves(int member) const = 0;
  // Returns whether it is a receive from any source, which a death does not end (MPI_ERR_PROC_FAILED_PENDING).
  virtual bool from_anybody() const { return false; }
  // For partitioned messages that have begun (p2p/partitioned.cpp); any thread may call. ready() marks partitions low
  // to high as ready to be sent; arrived() stores whether a partition has been received. They return an error class.
  virtual int ready(int /*low*/, int /*high*/) { return MPI_ERR_REQUEST; }
  virtual int arrived(int /*partition*/, bool& /*there*/) { return MPI_ERR_REQUEST; }
  // Returns whether the engine or other ranks may still use the object, so that its memory must never be freed.
  virtual bool stays() const { return false; }
  // Returns whether the operation is known to have completed; makes no progress.
  virtual bool finished() const { return false; }
  // The call that has made it, for hang reports.
  hang_report::Item item;
  // Returns whether other ranks may still need it after the program has freed its request.
  virtual bool owed() const { return true; }
};

}  // namespace nearfield::mpi
