// What Nearfield keeps for a communicator: its team, or why it has none.
//
// The state is attached to the communicator as an attribute at its first collective call, so it lives exactly as long
// as the communicator, however that is freed. A small cache per thread saves the look-up of the attribute.
#pragma once
#include <atomic>
#include <memory>

#include "engine/team/team.hpp"
#include "mpi/shim/host.hpp"

namespace nearfield::mpi {

struct Communicator {
  std::unique_ptr<team::Team> team;  // none: the host serves this communicator
  const char* reason = "";           // why there is none
  MPI_Comm comm{};
  int rank = 0, size = 1;
};

struct CachedCommunicator {
  MPI_Comm comm;
  std::uint64_t epoch;
  Communicator* state;
};
inline constexpr unsigned cached_communicators = 8;
extern thread_local CachedCommunicator communicator_cache[cached_communicators];
// Raised whenever a communicator's state goes; pairs with the load in communicator_of.
extern std::atomic<std::uint64_t> communicator_epoch;

// A revoked communicator belongs to the host, whose calls give the error that the program waits for.
inline bool revoked(MPI_Comm comm) {
  int flag = 0;
  return host.Comm_is_revoked && host.Comm_is_revoked(comm, &flag) == MPI_SUCCESS && flag;
}

Communicator* communicator_slowly(MPI_Comm comm);

// Collective at the first call for `comm`. nullptr: the host serves the call (handle invalid, MPI not running, ...).
inline Communicator* communicator_of(MPI_Comm comm) {
  const auto bits = (std::uint64_t)comm;
  const CachedCommunicator& cached = communicator_cache[(bits ^ bits >> 8) % cached_communicators];
  if (cached.comm == comm && cached.state && cached.epoch == communicator_epoch.load(std::memory_order_acquire))
      [[likely]]
    return cached.state;
  return communicator_slowly(comm);
}

// The process's node; nullptr while MPI is not running or where Nearfield cannot work.
team::Node* node();
void enter_host_init();
void leave_host_init();
void start_node();  // after MPI is up; complains and aborts on settings that cannot be honoured
void finalize_node();

}  // namespace nearfield::mpi
