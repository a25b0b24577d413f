// What conditions and estimates of algorithms may depend on: the same on all members of a team.
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
  bool one_group = true;  // members that share CPUs let each other run by yielding (memory::scheduling_group)
  std::size_t buffer_bytes = 64 << 10;  // one copy buffer
  int group = 0;                        // consecutive ranks that share a last-level cache; 0: nothing is known
  int package = 0;                      // that share a package
  Machine machine;
  Tree tree{size, group, package};
  bool oversubscribed() const { return ranks_per_cpu > 1; }
  // So many ranks on a CPU that members sleep at once, unless yields reach everybody.
  bool deep() const { return ranks_per_cpu >= 12 && !one_group; }
  int group_size() const { return group > 0 && group < size ? group : size; }
  // All last-level caches that the members use.
  double all_caches() const { return machine.cache * ((size + group_size() - 1) / group_size()); }
};

// A line of each member is the quickest for few, for more of them where they share a cache; beyond that a tree of them,
// and for those that share CPUs one counter. `group`: Shape::group.
inline Meeting meeting_for(int size, int group, bool oversubscribed) {
  const int few = group >= size ? 16 : 8;
  return oversubscribed ? Meeting::gate : size > few ? Meeting::tree : Meeting::flags;
}

// One copy buffer of rounds.
constexpr std::size_t buffer_bytes_for(bool oversubscribed) { return oversubscribed ? 256 << 10 : 64 << 10; }

// The shape of a team whose members spread over the machine's CPUs.
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
  shape.tree = {size, shape.group, shape.package};
  return shape;
}

}  // namespace nearfield::team
