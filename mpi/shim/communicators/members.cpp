// Translates groups of the host to members of the messenger, and to ranks of the world.
#include <algorithm>

#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi {
namespace {

constinit MPI_Group members_group{};  // of the messenger's members

}  // namespace

void set_members(MPI_Comm comm) { host.Comm_group(comm, &members_group); }

MPI_Group world_group() {
  static const MPI_Group group = [] {
    MPI_Group all;
    host.Comm_group(host.world, &all);
    return all;
  }();
  return group;
}

namespace {

// Returns the ranks of a group's processes in another group, or MPI_UNDEFINED; none: the host fails.
std::vector<int> translate(MPI_Group group, MPI_Group to) {
  int size = 0;
  if (host.Group_size(group, &size) != MPI_SUCCESS) return {};
  std::vector<int> ranks(size), there(size);
  for (int r = 0; r < size; ++r) ranks[r] = r;
  if (host.Group_translate_ranks(group, size, ranks.data(), to, there.data()) != MPI_SUCCESS) return {};
  return there;
}

// Returns a communicator's group, or its remote one, as members of the messenger, -1: no member; none: unknown.
std::vector<int> members_of(MPI_Comm comm, decltype(host.Comm_group) group_of) {
  MPI_Group group;
  if (group_of(comm, &group) != MPI_SUCCESS) return {};
  std::vector<int> members = translate(group, members_group);
  host.Group_free(&group);
  for (int& member : members)
    if (member < 0 || member >= the_messenger->members()) member = -1;
  return members;
}

}  // namespace

std::vector<int> members_near(MPI_Comm comm) {
  return the_messenger ? members_of(comm, host.Comm_group) : std::vector<int>();
}

std::vector<int> ranks_in_world(MPI_Group group) {
  std::vector<int> ranks = translate(group, world_group());
  if (std::ranges::find(ranks, MPI_UNDEFINED) != ranks.end()) ranks.clear();
  return ranks;
}

Side resolve_members(Communicator& state) {
  std::vector<int> members = members_of(state.comm, state.inter ? host.Comm_remote_group : host.Comm_group);
  const auto near = std::ranges::count_if(members, [](int member) { return member >= 0; });
  // The host serves all messages of a rank that is alone on its node, also to itself.
  Side side = members.empty()               ? Side::far
              : near == std::ssize(members) ? Side::near
              : near > 1                    ? Side::both
                                            : Side::far;
  if (state.inter) {  // both groups must agree: all ranks of both are members
    const std::vector<int> own = members_of(state.comm, host.Comm_group);
    if (side != Side::near || own.empty() || std::ranges::find(own, -1) != own.end()) side = Side::far;
  }
  const std::lock_guard lock(first_use);
  if (const Side known = state.side.load(std::memory_order_relaxed); known != Side::unknown) return known;
  if (side != Side::far) state.members = std::move(members);
  state.side.store(side, std::memory_order_release);  // SYNC: members-resolved
  return side;
}

int lowest_near(const Communicator& state) {
  if (!the_messenger) return state.rank;
  MPI_Group group;
  if (host.Comm_group(state.comm, &group) != MPI_SUCCESS) return state.rank;
  int lowest = 0;
  for (int member = MPI_UNDEFINED; lowest < state.rank; ++lowest)
    if (host.Group_translate_ranks(group, 1, &lowest, members_group, &member) == MPI_SUCCESS && member != MPI_UNDEFINED)
      break;
  host.Group_free(&group);
  return lowest;
}

}  // namespace nearfield::mpi
