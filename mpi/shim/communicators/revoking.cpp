// Fault tolerance (ULFM, law 8 of docs/architecture.md): MPIX_Comm_revoke must end all waits in a communicator, on all
// ranks, and the host does not see those that are inside Nearfield. So revocation is published in shared memory: to the
// team by a word in its member's block, to messages by their contexts.
//
//   rank that revokes                    ranks that wait
//   host.Comm_revoke                     in a collective: reads the members' words now and then (Team::revoked)
//   note_revoked                         for a message: learns which contexts are closed (look_for_revoked); its
//   Team::revoke: its member's word        request ends by ErrorKind::closed
//   Messenger::close: its contexts       then both: note_revoked, and the error; from then on calls query the host
//
// Programs that revoke nothing pay one load of may_be_revoked; the words in shared memory provide the ordering.
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

namespace {
constexpr auto& one_is_revoked = shim.one_is_revoked;  // known without asking the host
}

void note_revoked() {
  one_is_revoked.store(true, std::memory_order_relaxed);
  may_be_revoked.store(true, std::memory_order_relaxed);
}

bool revoked_slowly(MPI_Comm comm) {
  int flag = 0;
  if (host.Comm_is_revoked && host.Comm_is_revoked(comm, &flag) == MPI_SUCCESS && flag) return true;
  if (!one_is_revoked.load(std::memory_order_relaxed)) return false;
  const Communicator* const state = communicator_of(comm);
  if (!state) return false;
  return (state->near_team() && state->near_team()->revoked()) ||
         (the_messenger && state->context && the_messenger->is_closed(state->context));
}

void look_for_revoked() {
  if (the_messenger && the_messenger->look_for_closed()) note_revoked();
}

int Comm_revoke(MPI_Comm comm) {
  const int code = host.Comm_revoke(comm);
  if (code != MPI_SUCCESS) return code;
  Communicator* const state = communicator_of(comm);
  if (!state) return code;
  note_revoked();
  if (state->near_team()) state->near_team()->revoke();
  if (the_messenger && state->context) {
    for (std::uint64_t plan = 0; plan < state->plans; ++plan) the_messenger->close(context_of_plan(*state, plan));
    for (const std::uint64_t context : {context_of_collectives(*state), context_of_overlapping(*state),
                                        context_of_partitioned(*state), state->context})
      the_messenger->close(context);
  }
  return code;
}

int revoked_class() { return abi::always_fault_tolerant || host.Comm_revoke ? abi::err_revoked : MPI_ERR_OTHER; }

int died_class() { return abi::always_fault_tolerant || host.Comm_revoke ? abi::err_proc_failed : MPI_ERR_OTHER; }

}  // namespace nearfield::mpi
