#include "mpi/shim/collectives/engine/carry.hpp"

namespace nearfield::mpi {

using collectives::Call;
using collectives::Collective;

int to_host(Collective collective, Reason reason, FunctionRef<int()> host_call) {
  *last_algorithm = by_host;
  *went_to_host = true;
  const HostScope scope;
  const auto noted = [](int code) { return code == MPI_SUCCESS ? code : note_error_of_host(code); };
  if (!counting()) [[likely]]
    return noted(host_call());
  Tally& t = tally(collective);
  t.calls.fetch_add(1, std::memory_order_relaxed);
  t.host[std::size_t(reason)].fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t start = waiting::nanoseconds();
  const int code = host_call();
  t.nanoseconds.fetch_add(waiting::nanoseconds() - start, std::memory_order_relaxed);
  return noted(code);
}

int give_up(Communicator& c, const char* function, const char* why, int code) {
  if (is_being_created(c)) c.async_creation->wait();
  team::Team* const team = c.near_team();
  if (!team) return raise(c.comm, function, why, code);
  try {
    team->break_off(why, std::string("in ") + function);
  } catch (const team::Broken& broken) {
    team->context().calls.leave();
    return raise(c.comm, function, broken.what(), code);
  }
}

int carry(Communicator& c, const Call& call, const char* function, FunctionRef<int()> host_call, const Call* part_of) {
  if (!c.team) [[unlikely]]
    return carry_over_nodes(c, call, function, host_call);
  team::Team& team = *c.team;
  const Call& reported = part_of ? *part_of : call;
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  try {
    if (!enter(&team, call, !part_of)) return MPI_SUCCESS;
    const collectives::Algorithm* const algorithm =
        c.leaving.perform(*c.chooser, team.context(), call, collectives::pack(reported));
    team.context().calls.leave();
    if (!algorithm) [[unlikely]]
      return to_host(reported.collective, Reason::algorithm, host_call);
    *last_algorithm = algorithm->name;
  } catch (const team::Broken& broken) {
    team.context().calls.leave();
    return raise(c.comm, function, broken);
  } catch (const team::Refused&) {  // by all members alike, before anything has moved
    team.context().calls.leave();
    c.enabled = false;
    return to_host(reported.collective, Reason::memory, host_call);
  } catch (const OutOfMemory&) {
    return give_up(c, function, "out of memory");
  }
  return end_call(team.process(), call, start, !part_of);
}

}  // namespace nearfield::mpi
