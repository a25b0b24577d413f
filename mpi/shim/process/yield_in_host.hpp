// Makes waits inside the host sleep now and then, so that other threads can run.
//
// Hosts spin in blocking calls, and call sched_yield between polls that have found nothing. If ranks belong to
// different scheduling groups (engine/team/process.hpp), sched_yield gives the CPU to another rank late or not at all.
// So libnearfield.so replaces sched_yield for threads that are in a blocking call of the host
// (mpi/preload/yielding.cpp):
//
//   more ranks than CPUs   yields; once the call has waited for 1 ms, every hundredth yield is a nap (a short sleep)
//                          in which another rank runs
//   otherwise              yields; once the call has waited for 10 ms, naps, but only if the call moves no data of the
//                          program's and the host does not need this rank for other operations
//   in MPI_Init            every fifth yield is a nap of 0.1 ms, if the launcher's variables say that there are more
//                          ranks than CPUs: nothing else is known yet
//   in a poll of ours      nothing: the wait or the test that polls the host yields itself
//
// After MPI_Init a nap lasts a 64th of the time that the call has waited, so that it delays the call by little: at most
// 2 ms in calls that move no data of the program's while the host does not need this rank, 0.2 ms in others.
#pragma once
#include "mpi/shim/process/threads/inside.hpp"

namespace nearfield::mpi {

// The flag by which libnearfield.so sees that the calling thread is in the host, and the function that finds it.
using MarkOfThread = bool* (*)();
inline constinit MarkOfThread mark_of_preload = nullptr;
bool& mark_in_host();

// The host's MPI_Init begins and ends.
void host_starts();
void host_has_started();

// Scope in which the calling thread is inside the host, in a call of the program. Scopes nest.
class InHost {
 public:
  explicit InHost(bool moves_data);
  ~InHost();
  InHost(const InHost&) = delete;

 private:
  const decltype(Inside::host) before_;
};

// Scope in which the calling thread polls the host for a wait or a test of ours, which yields itself. It may hold the
// messenger's lock, and a yield keeps the CPU from the thread for milliseconds where others compute.
class PollsHost {
 public:
  PollsHost() : before_(inside->polls_host) { inside->polls_host = mark_in_host() = true; }
  ~PollsHost() {
    inside->polls_host = before_;
    mark_in_host() = before_ || inside->host.now;
  }
  PollsHost(const PollsHost&) = delete;

 private:
  const bool before_;
};

// Called when the host has polled in vain. Returns whether the host's own yield is not needed.
bool yield_in_host();

}  // namespace nearfield::mpi
