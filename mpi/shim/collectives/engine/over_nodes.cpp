// Collectives of communicators over several nodes (engine/hierarchy). The host's own algorithm is one of those that are
// tried. Within a node, the ranks' calls are compared and hangs are reported as in a communicator on one node.
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"

namespace nearfield::mpi {

int carry_over_nodes(Communicator& c, const collectives::Call& call, const char* function,
                     FunctionRef<int()> host_call) {
  if (hierarchy::rows_of(call.collective).empty()) return to_host(call.collective, Reason::communicator, host_call);
  const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
  team::Team* const team = c.near_team();
  int code = MPI_SUCCESS;
  const hierarchy::HierarchyAlgorithm* row = nullptr;
  auto leave = [&] {
    if (team) team->context().calls.leave();
  };
  auto fail = [&](const team::Broken& broken) {
    leave();
    return raise(c.comm, function, broken);
  };
  try {
    if (!enter(team, call, true)) return MPI_SUCCESS;
    if (call.bytes >
        c.hierarchy->transport().longest() / std::size_t(c.size) / std::size_t(c.hierarchy->placement().most()))
      return to_host(call.collective, Reason::algorithm, host_call);
    if (team) team->context().calls.enter_collective(collectives::pack(call));
    row = c.hierarchy_chooser->perform(*c.hierarchy, call,
                                       [&] { code = to_host(call.collective, Reason::algorithm, host_call); });
    leave();
  } catch (const team::Broken& broken) {
    // The other ranks of the node wait for us, so end their calls too.
    if (team && !dynamic_cast<const team::Died*>(&broken)) team->break_off(broken.what(), team::kind_of(broken));
    return fail(broken);
  } catch (const OutOfMemory&) {
    return give_up(c, function, "out of memory");
  }
  if (!row) return code;
  *last_algorithm = row->name;
  return end_call(c.hierarchy->home(), call, start, true);
}

}  // namespace nearfield::mpi
