// Fault tolerance (ULFM, law 8 of docs/dev/architecture.md): MPIX_Comm_revoke must end all waits in a communicator, on
// all ranks, and the host does not see waits inside Nearfield. So revocation is published in shared memory: for
// collectives by a word of the revoking member of the team, for messages by closing the communicator's contexts.
//
//   rank that revokes                    rank that waits
//   host.Comm_revoke                     in a collective: reads the members' words now and then (Team::revoked)
//   note_revoked                         for a message: learns which contexts are closed (look_for_revoked); its
//   Team::revoke: sets its word            request ends with ErrorKind::closed
//   Messenger::close for each context    in both cases: note_revoked, and the error. Later calls on the communicator
//                                          ask the host, and go to it once it knows of the revocation
//
// Programs that revoke nothing pay one load of may_be_revoked; the words in shared memory provide the ordering.
#include <unistd.h>

#include <algorithm>

#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/p2p/point.hpp"

namespace nearfield::mpi {

namespace {
constinit std::atomic<bool> one_is_revoked{false};           // we know of a revocation without asking the host
constexpr std::uint64_t patience_with_host = 1'000'000'000;  // ns
}  // namespace

void note_revoked() {
  one_is_revoked.store(true, std::memory_order_relaxed);
  may_be_revoked.store(true, std::memory_order_relaxed);
}

int note_error_of_host(int code) {
  if (host.Comm_is_revoked) may_be_revoked.store(true, std::memory_order_relaxed);
  return code;
}

namespace {

bool host_knows(MPI_Comm comm) {
  int flag = 0;
  return host.Comm_is_revoked && host.Comm_is_revoked(comm, &flag) == MPI_SUCCESS && flag;
}

// Progresses the host until known(), or for a second.
template <class Known>
void wait_for_host(Known known) {
  const std::uint64_t end = waiting::nanoseconds() + patience_with_host;
  while (!known() && waiting::nanoseconds() < end) {
    progress_of_host().step();
    usleep(1000);
  }
}

}  // namespace

bool revoked_slowly(MPI_Comm comm) {
  if (host_knows(comm)) return true;
  if (!one_is_revoked.load(std::memory_order_relaxed)) return false;
  const Communicator* const state = communicator_of(comm);
  return state && ((state->near_team() && state->near_team()->revoked()) ||
                   (the_messenger && state->context && the_messenger->is_closed(state->context)));
}

void let_host_learn(MPI_Comm comm) {
  if (host.Comm_is_revoked) wait_for_host([&] { return host_knows(comm); });
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
    // The first context is the one that revoked() asks for after a request of any of these contexts has ended.
    for (const std::uint64_t context : {state->context, context_of_creation(*state), context_of_collectives(*state),
                                        context_of_overlapping(*state), context_of_partitioned(*state)})
      the_messenger->close(context);
    for (std::uint64_t plan = 0; plan < state->plans; ++plan) the_messenger->close(context_of_plan(*state, plan));
  }
  return code;
}

bool may_come_from(const Communicator& c, int member) {
  const bool known = c.side.load(std::memory_order_acquire) != Side::unknown;  // SYNC: members-resolved
  if (known && std::ranges::find(c.members, member) == c.members.end()) return false;
  MPI_Group acknowledged;
  if (!the_messenger->known_dead(member) || !host.Comm_failure_get_acked ||
      host.Comm_failure_get_acked(c.comm, &acknowledged) != MPI_SUCCESS)
    return true;
  Communicator* const world = communicator_of(host.world);
  if (world) side_of(*world);  // it may not have carried a message yet
  const std::vector<int> ranks = ranks_in_world(acknowledged);
  host.Group_free(&acknowledged);
  return std::ranges::none_of(ranks, [&](int rank) { return world && world->members[std::size_t(rank)] == member; });
}

// We may learn of a death earlier than the host, which acknowledges only the deaths that it knows of. So wait for it.
int Comm_failure_ack(MPI_Comm comm) {
  int code = host.Comm_failure_ack(comm);
  const Communicator* const state = communicator_of(comm);
  if (!state || !the_messenger ||
      state->side.load(std::memory_order_acquire) == Side::unknown)  // SYNC: members-resolved
    return code;
  auto may_still_come = [&](int member) {
    return member >= 0 && the_messenger->known_dead(member) && may_come_from(*state, member);
  };
  wait_for_host([&] {
    if (code == MPI_SUCCESS && std::ranges::any_of(state->members, may_still_come)) code = host.Comm_failure_ack(comm);
    return code != MPI_SUCCESS || std::ranges::none_of(state->members, may_still_come);
  });
  return code;
}

int revoked_class() { return abi::always_fault_tolerant || host.Comm_revoke ? abi::err_revoked : MPI_ERR_OTHER; }

int died_class() { return abi::always_fault_tolerant || host.Comm_revoke ? abi::err_proc_failed : MPI_ERR_OTHER; }

int pending_class() {
  return abi::always_fault_tolerant || host.Comm_revoke ? abi::err_proc_failed_pending : MPI_ERR_OTHER;
}

}  // namespace nearfield::mpi
