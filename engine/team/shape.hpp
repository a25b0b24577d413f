// What conditions and estimates of algorithms may depend on: the same on all members of a team.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/machine.hpp"

namespace nearfield::team {

struct Shape {
  int size = 1;
  double ranks_per_cpu = 1;  // 1 where every member has a CPU of its own
  bool gated = false;
  bool one_group = true;  // members that share CPUs let each other run by yielding (memory::scheduling_group)
  std::size_t buffer_bytes = 64 << 10;  // one copy buffer
  int group = 0;  // ranks that share a last-level cache, consecutive ones; 0: all, or none in particular
  Machine machine;
  bool crowded() const { return ranks_per_cpu > 1; }
  // Crowds so deep that members sleep at once, unless yields reach everybody.
  bool deep() const { return ranks_per_cpu >= 12 && !one_group; }
  int group_size() const { return group > 0 && group < size ? group : size; }
  // All last-level caches that the members use.
  double all_caches() const { return machine.cache * ((size + group_size() - 1) / group_size()); }
};

// The shape of a team whose members spread over the machine's CPUs.
inline Shape shape_for(int size, const Machine& machine) {
  Shape shape{size, size > machine.cpus ? size / machine.cpus : 1, false, false, 64 << 10, 0, machine};
  if (!shape.crowded()) shape.group = int(machine.cores);
  shape.gated = shape.crowded() || size > 8;
  if (shape.crowded()) shape.buffer_bytes = 256 << 10;
  return shape;
}

}  // namespace nearfield::team
