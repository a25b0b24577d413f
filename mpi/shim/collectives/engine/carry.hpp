// The common path of every collective: find the team, check what has to be checked, run an algorithm, or hand the
// call to the host. Whatever decides here is equal on all ranks (law 1 of docs/architecture.md), except for
// arguments that are wrong: those go to the host, which raises the error that the program expects.
#pragma once
#include <new>

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/handles/types.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi {

// Raises what a wait of ours has thrown, as an error of `comm`.
int raise(MPI_Comm comm, const char* function, const team::Broken& broken);

// Its error class, with the text reported.
int class_and_text(const char* function, const team::Broken& broken);
// Fills type, operator and length of a reduction; the reason why not otherwise.
std::optional<Reason> describe_reduction(collectives::Call& call, MPI_Count count, MPI_Datatype type, MPI_Op op);

// A reduction, as far as it tells whether the host may serve it on a young communicator. Hosts combine operands in
// orders of their own, and what is rounded one way at first and another way later differs: where that can show, the
// host hands operands round at most (young.hpp).
struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Count count;
  bool gathers;  // by a call that can do that
};
bool host_may_serve(const Communicator& c, const Reduction& reduction);

// Returns whether the host serves this call, which is one of the first.
inline bool by_host_for_youth(Communicator& c, const Reduction* reduction) {
  if (!is_young(c) || (reduction && !host_may_serve(c, *reduction))) return false;
  --c.young;
  return true;
}
// Called before what needs a team.
inline void grow_up(MPI_Comm comm) {
  if (Communicator* const state = communicator_of(comm)) state->young = 0;
}

// Who carries a call; communicator is null when the host has to take it.
struct Admission {
  Communicator* communicator = nullptr;
  Reason reason = Reason::communicator;
};

inline Admission admit(MPI_Comm comm, const Reduction* reduction = nullptr) {
  Communicator* const state = communicator_of(comm);
  if (!state) [[unlikely]]
    return {};
  if (state->async_creation && !state->async_creation->settled()) [[unlikely]]
    if (!state->async_creation->wait()) return {};
  if (!state->team && !state->hierarchy) [[unlikely]] {
    if (revoked(comm)) return {};
    if (by_host_for_youth(*state, reduction)) return {nullptr, Reason::young};
    if (!state->team_tried) make_team(*state);
    if (!state->team && !state->hierarchy)
      return {nullptr, state->alone && !state->enabled ? Reason::off : Reason::communicator};
  }
  if (!state->enabled) [[unlikely]]
    return {nullptr, Reason::off};
  if (revoked(comm)) [[unlikely]]
    return {};
  return {state, Reason::communicator};
}

// Return whether ranks compare their calls, and whether one of those that share memory with us has given up.
inline bool checks(const Communicator& c) {
  if (is_being_created(c)) [[unlikely]]
    return process_ever()->settings().check;
  return c.near_team() && c.near_team()->plan().check;
}
inline bool broken_off(const Communicator& c) {
  return !is_being_created(c) && c.near_team() && c.near_team()->broken_off();
}

template <class HostCall>
int to_host(collectives::Collective collective, Reason reason, HostCall call) {
  *last_algorithm = by_host;
  *went_to_host = true;
  const HostScope scope;
  if (!counting()) [[likely]]
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
int check_before_host(Communicator& c, const collectives::Call& call, const char* function);

// This rank cannot do its part of a call: those of its node must not wait for it. An error on all of them.
inline int give_up(Communicator& c, const char* function, const char* why, int code = MPI_ERR_NO_MEM) {
  if (is_being_created(c)) c.async_creation->wait();
  team::Team* const team = c.near_team();
  if (!team) return raise(c.comm, function, why, code);
  try {
    team->break_off(why, std::string("in ") + function);
  } catch (const team::Broken& broken) {
    team->context().leave();
    return raise(c.comm, function, broken.what(), code);
  }
}

// Runs `body`, our part of a collective call, which may need memory of its own.
template <class Body>
int with_memory(Communicator& c, const char* function, Body body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    return give_up(c, function, "out of memory");
  }
}

// Begins a call of ours, on those that share memory with us. False: it moves nothing.
inline bool enter(team::Team* team, const collectives::Call& call, bool compares) {
  if (team && team->broken_off()) [[unlikely]]
    team->report_break("about to go on, " + collectives::describe_call(collectives::pack(call)));
  if (compares && team && team->plan().check) [[unlikely]]
    collectives::compare_calls(team->context(), call);
  return call.bytes || collectives::operation(call.collective).moves_nothing();
}
// And what it ends with. Programs order the host's one-sided operations by collectives and then expect them done; a
// collective of the host would have progressed them. MPI_SUCCESS.
inline int end_call(team::Process& process, const collectives::Call& call, std::uint64_t start, bool counts) {
  if (open_windows.load(std::memory_order_relaxed)) [[unlikely]]
    process.progress().step_host();
  if (counts && counting()) [[unlikely]]
    count_call(call.collective, call.bytes, start);
  return MPI_SUCCESS;
}

// carry() on a communicator over several nodes (over_nodes.cpp).
int carry_over_nodes(Communicator& c, const collectives::Call& call, const char* function,
                     FunctionRef<int()> host_call);

// `part_of`: what the program has called, where that is made of several such calls; it is what gets reported, and has
// been compared already.
template <class HostCall>
int carry(Communicator& c, const collectives::Call& call, const char* function, HostCall host_call,
          const collectives::Call* part_of = nullptr) {
  if (!c.team) [[unlikely]]
    return carry_over_nodes(c, call, function, host_call);
  team::Team& team = *c.team;
  const collectives::Call& reported = part_of ? *part_of : call;
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  try {
    if (!enter(&team, call, !part_of)) return MPI_SUCCESS;
    const collectives::Algorithm* algorithm = nullptr;
    bool without_room = false;
    try {
      algorithm = c.leaving.perform(*c.chooser, team.context(), call, collectives::pack(reported));
    } catch (const team::Refused&) {
      if (!c.leaving.needs_no_room(call)) throw;
      without_room = true;
    }
    if (without_room) [[unlikely]]
      algorithm = choosing::Leaving::perform_without_room(team.context(), call);
    team.context().leave();
    if (!algorithm) [[unlikely]]
      return to_host(reported.collective, Reason::algorithm, host_call);
    *last_algorithm = algorithm->name;
  } catch (const team::Broken& broken) {
    team.context().leave();
    return raise(c.comm, function, broken);
  } catch (const team::Refused&) {  // by all members alike, before anything has moved
    team.context().leave();
    c.enabled = false;
    return to_host(reported.collective, Reason::memory, host_call);
  } catch (const OutOfMemory&) {
    return give_up(c, function, "out of memory");
  }
  return end_call(team.process(), call, start, !part_of);
}

}  // namespace nearfield::mpi
