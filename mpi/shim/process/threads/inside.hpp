// What a thread is inside of, beside its calls. Who enters something notes what was before, and puts that back when it
// leaves; where a callback of the program has left it by longjmp, the next call does (calls/calling.hpp).
#pragma once
#include <cstdint>

#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {

struct OneSided;

struct Inside {
  unsigned lent = 0;                      // stand-ins are there for this thread (stand_in.hpp)
  bool creating = false;                  // in the host on our own behalf
  bool recorded = false;                  // in a call that is recorded: what the host or a callback calls is part of it
  const OneSided* being_freed = nullptr;  // the window that it frees: callbacks of attributes may still ask what it is
  struct {
    bool now = false, moves_data = false;
    std::uint64_t since = 0;  // nanoseconds; 0: no look has been in vain
    unsigned looks = 0;       // in vain since the last nap
  } host;                     // in a call of the program's (giving_way.hpp)
};
extern const PerThread<Inside, threads::at::inside> inside;
// Leaves what has been entered since it was `before`.
void return_to(const Inside& before);

}  // namespace nearfield::mpi
