// Shape of a team, the same on all members: conditions and estimates of algorithms depend on nothing else.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/machine/machine.hpp"
#include "engine/settings/settings.hpp"
#include "engine/team/tree.hpp"

namespace nearfield::team {

struct Shape {
  int size = 1;
  double ranks_per_cpu = 1;  // 1 where every member has a CPU of its own
  Meeting meeting = Meeting::flags;
  bool one_group = true;  // members that share CPUs let each other run by yielding (machine::scheduling_group)
  std::size_t buffer_bytes = 64 << 10;  // of one copy buffer
  int group = 0;                        // consecutive ranks that share a last-level cache; 0: unknown
  int package = 0;                      // consecutive ranks that share a package; 0: unknown
  Machine machine;
  PairStates states{};  // all states with known figures: members may come into another, since virtual CPUs move
  Tree tree{size, group, package};
  bool oversubscribed() const { return ranks_per_cpu > 1; }
  // True if so many ranks share a CPU that members sleep at once, unless yields let all others run.
  bool deep() const { return ranks_per_cpu >= 12 && !one_group; }
  int group_size() const { return group > 0 && group < size ? group : size; }
  // Returns the bytes of all last-level caches that the members use.
  double all_caches() const { return machine.cache * ((size + group_size() - 1) / group_size()); }
};

// Returns how the members of a barrier meet. One line per member is fastest for few members, or for more that share a
// cache; for larger teams a tree of lines, and for members that share CPUs one counter. `group`: Shape::group.
inline Meeting meeting_for(int size, int group, bool oversubscribed) {
  const int few = group >= size ? 16 : 8;
  return oversubscribed ? Meeting::gate : size > few ? Meeting::tree : Meeting::flags;
}

// Returns the bytes of one copy buffer.
constexpr std::size_t buffer_bytes_for(bool oversubscribed) { return oversubscribed ? 256 << 10 : 64 << 10; }

// Returns the shape of a team whose members spread over the machine's CPUs.
inline Shape shape_for(int size, const Machine& machine) {
  Shape shape;
  shape.size = size;
  shape.ranks_per_cpu = size > machine.cpus ? size / machine.cpus : 1;
  shape.one_group = false;
  if (shape.oversubscribed()) {
    shape.buffer_bytes = buffer_bytes_for(true);
  } else {
    shape.group = int(machine.cores);
    if (machine.sockets > 1) shape.package = int(machine.cpus / machine.sockets);
  }
  shape.meeting = meeting_for(size, shape.group, shape.oversubscribed());
  shape.machine = machine;
  shape.states = machine::pair_states(machine);
  shape.tree = {size, shape.group, shape.package};
  return shape;
}

}  // namespace nearfield::team
