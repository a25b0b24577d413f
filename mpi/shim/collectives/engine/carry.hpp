// The common path of every collective: decide who serves it (route.hpp), make the checks that are asked for, then run
// an algorithm or pass the call to the host. Calls with wrong arguments go to the host, which raises the error.
#pragma once
#include <new>

#include "engine/base/function_ref.hpp"
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/communicators/async_creation.hpp"
#include "mpi/shim/handles/types.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/process/host_scope.hpp"
#include "mpi/shim/statistics/counts.hpp"

namespace nearfield::mpi {

// Raises what a wait of ours has thrown, as an error of `comm`.
int raise(MPI_Comm comm, const char* function, const team::Broken& broken);

// Logs the text of `broken` and returns its error class.
int class_and_text(const char* function, const team::Broken& broken);
// Fills in type, operator and length of a reduction. Returns nothing, or why the engine cannot serve it.
std::optional<Reason> describe_reduction(collectives::Call& call, MPI_Count count, MPI_Datatype type, MPI_Op op);

// Arguments that MPI requires to be equal on all ranks.
struct ReductionArguments {
  MPI_Count count;
  MPI_Datatype type;
  MPI_Op op;
};

inline CommunicatorFacts Communicator::facts(bool asks_reach) {
  const TeamStanding standing = inter                     ? TeamStanding::groups
                                : is_being_created(*this) ? TeamStanding::begun
                                : team                    ? TeamStanding::team
                                : hierarchy               ? TeamStanding::nodes
                                : team_tried              ? TeamStanding::none
                                                          : TeamStanding::untried;
  const MessageReach reach = asks_reach || inter ? reach_of(*this) : MessageReach::unasked;
  return {Equal(standing), Equal(reach), Equal(enabled),  Equal(several_nodes),
          Equal(deferred), Equal(size),  Equal(host_kind)};
}

// Who serves a call. `communicator` is null if the host does.
struct Admission : Route {
  Communicator* communicator = nullptr;
};
// Calls route() until it names a server, and makes a team or waits for one if it says so.
Admission decide(Communicator& c, const CallFacts& call, const ReductionArguments* reduction);

// Says who serves a call. Calls on unknown or revoked communicators go to the host, which raises the error.
[[gnu::always_inline]] inline Admission admit_inline(const CallFacts& call, MPI_Comm comm,
                                                     const ReductionArguments* reduction) {
  Communicator* const c = communicator_of(comm);
  if (!c || left_to_host(comm)) [[unlikely]]
    return {{Server::host}};
  const Route by = route(c->facts(asks_reach(call)), call, {});
  if (by.who <= Server::messages) [[likely]]
    return {by, c};
  if (by == Route{Server::host, Reason::single}) return {by};
  return decide(*c, call, reduction);
}
// The same, compiled once.
Admission admit(const CallFacts& call, MPI_Comm comm, const ReductionArguments* reduction = nullptr);

// The same for a call in one of the forms of form.hpp. A call whose request argument is null goes to the host. Only
// for blocking calls, which are short, is a copy inlined into each function.
template <collectives::Collective collective, class When>
[[gnu::always_inline]] inline Admission admit(const When& when, MPI_Comm comm, const ReductionArguments* reduction) {
  constexpr const CallFacts& call = CalledFunction<collective, When::form>::facts;
  if constexpr (!When::overlaps) return admit_inline(call, comm, reduction);
  else return when.request ? admit(call, comm, reduction) : Admission{{Server::host, Reason::argument}};
}

// checks(): whether ranks compare their calls. broken_off(): whether a rank of our team has failed during a call.
inline bool checks(const Communicator& c) {
  const team::Team* const team = is_being_created(c) ? base_team : c.near_team();
  return team && team->plan().check;
}
inline bool broken_off(const Communicator& c) {
  return !is_being_created(c) && c.near_team() && c.near_team()->broken_off();
}

// Passes a call to the host by `host_call`, and counts it. Returns the error code.
int to_host(collectives::Collective collective, Reason reason, FunctionRef<int()> host_call);

// Compares the calls of all ranks before one that goes to the host although the communicator has a team.
int check_before_host(Communicator& c, const collectives::Call& call, const char* function);

// Called if this rank cannot do its part of a call: ends the call with an error on all ranks of its node.
int give_up(Communicator& c, const char* function, const char* why, int code = MPI_ERR_NO_MEM);

// Runs `body`, our part of a collective call, which may need memory of its own.
template <class Body>
int with_memory(Communicator& c, const char* function, Body body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    return give_up(c, function, "out of memory");
  }
}

// Begins a call that `team` serves; `compares`: ranks compare it if the plan says so. Returns Call::does_anything().
inline bool enter(team::Team* team, const collectives::Call& call, bool compares) {
  if (team && team->broken_off()) [[unlikely]]
    team->report_break("about to go on, " + collectives::describe_call(collectives::pack(call)));
  if (compares && team && team->plan().check) [[unlikely]]
    collectives::compare_calls(team->context(), call);
  return call.does_anything();
}
// Ends such a call and returns MPI_SUCCESS. It progresses one-sided operations of the host, as a collective of the host
// would: programs call a collective after such operations and then expect them to be complete.
inline int end_call(team::Process& process, const collectives::Call& call, std::uint64_t start, bool counts) {
  if (open_windows.load(std::memory_order_relaxed)) [[unlikely]]
    process.progress().step_host();
  if (counts && counting()) [[unlikely]]
    count_call(call.collective, call.bytes, start);
  return MPI_SUCCESS;
}

// carry() for a communicator over several nodes (over_nodes.cpp).
int carry_over_nodes(Communicator& c, const collectives::Call& call, const char* function,
                     FunctionRef<int()> host_call);

// Runs a collective call on the team or the hierarchy. `part_of`: the program's call, if it consists of several calls
// of carry(); then that one is reported, and the ranks have compared it already.
int carry(Communicator& c, const collectives::Call& call, const char* function, FunctionRef<int()> host_call,
          const collectives::Call* part_of = nullptr);

}  // namespace nearfield::mpi
