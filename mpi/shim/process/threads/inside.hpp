// Scopes that a thread is inside of, besides its MPI calls. Each saves the state when it is entered and restores it
// when it is left. If a callback leaves one by longjmp, the next call restores the state (calls/call_scope.hpp).
#pragma once
#include <cstdint>

#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {

struct OneSided;

struct Inside {
  unsigned host_scopes = 0;               // that the progress thread knows of (host_scope.hpp)
  bool creating = false;                  // calls the host for Nearfield itself, to create a team
  bool polls_host = false;                // for a wait or a test of ours (yield_in_host.hpp)
  bool recorded = false;                  // in a recorded call: calls of the host or a callback are part of it
  const OneSided* being_freed = nullptr;  // the window that it frees: callbacks of attributes may still query it
  struct {
    bool now = false, moves_data = false;
    std::uint64_t since = 0;  // nanoseconds, time of the first vain poll; 0: none
    unsigned looks = 0;       // vain polls since the last nap
  } host;                     // in a call of the program (yield_in_host.hpp)
};
extern const PerThread<Inside, threads::at::inside> inside;
// Leaves all scopes that have been entered since `before`.
void return_to(const Inside& before);

}  // namespace nearfield::mpi
