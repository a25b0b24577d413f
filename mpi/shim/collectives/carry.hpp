// The common path of every collective: find the team, check what has to be checked, run an algorithm, or hand the
// call to the host. Whatever decides here is equal on all ranks (law 1 of docs/architecture.md), except for
// arguments that are wrong: those go to the host, which raises the error that the program expects.
#pragma once
#include <new>

#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/handles/types.hpp"
#include "mpi/shim/stand_in.hpp"
#include "mpi/shim/stats.hpp"

namespace nearfield::mpi {

// What a wait of ours has thrown, as an error of `comm`.
int raise(MPI_Comm comm, const char* function, const team::Broken& broken);

// Its error class, with the text reported.
int class_and_text(const char* function, const team::Broken& broken);
// Fills type, operator and length of a reduction; the reason why not otherwise.
std::optional<Reason> describe_reduction(collectives::Call& call, MPI_Count count, MPI_Datatype type, MPI_Op op);

extern thread_local const char* last_algorithm;

// What a call needs to go on inside Nearfield; team is null when the host has to take it.
struct Admission {
  team::Team* team = nullptr;
  Communicator* communicator = nullptr;
  Reason reason = Reason::communicator;
};

inline Admission admit(MPI_Comm comm) {
  Communicator* const state = communicator_of(comm);
  if (!state || !state->team) [[unlikely]] {
    if (state && !state->team_tried && !revoked(comm)) make_team(*state);
    if (!state || !state->team) return {nullptr, state, Reason::communicator};
  }
  if (!state->team->enabled) [[unlikely]]
    return {nullptr, state, Reason::off};
  if (revoked(comm)) [[unlikely]]
    return {nullptr, state, Reason::communicator};
  return {state->team.get(), state, Reason::communicator};
}

inline choosing::Chooser& chooser_of(const team::Team& team) {
  return *static_cast<const Communicator*>(team.owner)->chooser;
}

template <class HostCall>
int to_host(collectives::Collective collective, Reason reason, HostCall call) {
  last_algorithm = "host";
  const StandIn stand_in;
  if (!stats_on) [[likely]]
    return call();
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.host[std::size_t(reason)].fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t start = waiting::nanoseconds();
  const int code = call();
  t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
  return code;
}

// Compares the calls of all ranks before one that goes to the host although the communicator has a team.
int check_before_host(team::Team& team, MPI_Comm comm, const collectives::Call& call, const char* function);

// This rank cannot do its part of a call: the others must not wait for it. An error on all.
inline int give_up(team::Team& team, MPI_Comm comm, const char* function, const char* why) {
  try {
    team.break_off(why, team.track().doing());
  } catch (const team::Broken& broken) {
    team.track().leave();
    return raise(comm, function, broken.what(), MPI_ERR_NO_MEM);
  }
}

// Runs `body`, our part of a collective call, which may need memory of its own.
template <class Body>
int with_memory(team::Team& team, MPI_Comm comm, const char* function, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return give_up(team, comm, function, "out of memory");
  }
}

template <class HostCall>
int carry(team::Team& team, MPI_Comm comm, const collectives::Call& call, const char* function, HostCall host_call) {
  const std::uint64_t start = stats_on ? waiting::nanoseconds() : 0;
  try {
    if (team.broken_off()) [[unlikely]]
      team.break_off("the communicator was given up when a rank could not go on", team.track().doing());
    if (team.plan().check) [[unlikely]]
      collectives::compare_calls(team.track(), call);
    if (call.bytes == 0 && !collectives::operation(call.collective).moves_nothing()) return MPI_SUCCESS;
    team.track().enter(collectives::pack(call));
    const collectives::Algorithm* const algorithm = chooser_of(team).perform(team.track(), call);
    team.track().leave();
    if (!algorithm) [[unlikely]]
      return to_host(call.collective, Reason::algorithm, host_call);
    last_algorithm = algorithm->name;
  } catch (const team::Truncated& truncated) {
    team.track().leave();
    return raise(comm, function, truncated.what(), MPI_ERR_TRUNCATE);
  } catch (const team::Broken& broken) {
    team.track().leave();
    return raise(comm, function, broken);
  } catch (const team::Refused&) {  // by all members alike, before anything has moved
    team.track().leave();
    team.enabled = false;
    return to_host(call.collective, Reason::memory, host_call);
  } catch (const std::bad_alloc&) {
    return give_up(team, comm, function, "out of memory");
  }
  // Programs order the host's one-sided operations by collectives and then expect them done; a collective of the host
  // would have progressed them.
  if (open_windows.load(std::memory_order_relaxed)) [[unlikely]]
    team.node().progress.step_host();
  if (stats_on) [[unlikely]] {
    Tally& t = tally(call.collective);
    t.calls.fetch_add(1, std::memory_order_relaxed);
    t.bytes.fetch_add(call.bytes, std::memory_order_relaxed);
    t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
  }
  return MPI_SUCCESS;
}

}  // namespace nearfield::mpi
