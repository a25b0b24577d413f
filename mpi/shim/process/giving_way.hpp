// Waits of the host that give way to others.
//
// Hosts spin in calls that block, and call sched_yield between two looks that have found nothing. That hands a CPU on
// late, or to nobody, where ranks belong to different scheduling groups (engine/team/process.hpp), and never lets it
// rest. libnearfield.so serves sched_yield to threads that are in such a call of the host (mpi/preload/yielding.cpp):
//
//   more ranks than CPUs   yields, which cost least where they hand the CPU on; after a hundred in vain a nap, the
//   shortest
//                          there is, in which somebody else runs; after 10 ms naps alone
//   a CPU of its own       as the host would; after 10 ms naps, in calls that move no data of the program's
//
// A nap is a 64th of the time that the call has waited, so a chain of waits for each other grows by little, and
// at most 2 ms, a fifth of a millisecond while data may be moved or the host needs this rank for what others do.
#pragma once
#include "mpi/shim/process/threads/inside.hpp"

namespace nearfield::mpi {

// Where libnearfield.so looks whether the calling thread is in the host; set when it loads us.
extern bool* (*mark_in_host)();

// While it is alive the calling thread is in the host, in a call of the program's. They nest.
class InHost {
 public:
  explicit InHost(bool moves_data);
  ~InHost();
  InHost(const InHost&) = delete;

 private:
  const decltype(Inside::host) before_;
};

// The host has found nothing: whether the thread has had a nap.
bool give_way();

}  // namespace nearfield::mpi
