// Waits of the host that sleep, so that others can run.
//
// Hosts spin in blocking calls, and call sched_yield between polls that have found nothing. If ranks belong to
// different scheduling groups (engine/team/process.hpp), that hands the CPU on late or not at all, and the CPU is never
// idle. libnearfield.so serves sched_yield to threads that are in such a call of the host (mpi/preload/yielding.cpp):
//
//   more ranks than CPUs   yields, which cost least if they hand the CPU on; after a hundred in vain a nap, the
//                          shortest there is, in which another rank runs; after 10 ms naps alone
//   a CPU of its own       as the host would; after 10 ms naps, in calls that move no data of the program's
//
// A nap is a 64th of the time that the call has waited, so a chain of waits grows by little, and at most 2 ms, or a
// fifth of a millisecond while data may be moved or the host needs this rank for other operations.
#pragma once
#include "mpi/shim/process/threads/inside.hpp"

namespace nearfield::mpi {

// The flag by which libnearfield.so sees that the calling thread is in the host, and the function that finds it.
using MarkOfThread = bool* (*)();
inline constinit MarkOfThread mark_of_preload = nullptr;
bool& mark_in_host();

// Scope in which the calling thread is inside the host, in a call of the program. They nest.
class InHost {
 public:
  explicit InHost(bool moves_data);
  ~InHost();
  InHost(const InHost&) = delete;

 private:
  const decltype(Inside::host) before_;
};

// Called when the host has polled in vain. Returns whether the thread has slept.
bool yield_in_host();

}  // namespace nearfield::mpi
