#include "tools/simulation/caches.hpp"

#include <algorithm>

namespace nearfield::simulation {

Counts& Counts::operator-=(const Counts& before) {
  accesses -= before.accesses;
  l1_misses -= before.l1_misses;
  l2_misses -= before.l2_misses;
  near -= before.near;
  far -= before.far;
  sockets -= before.sockets;
  memory -= before.memory;
  written -= before.written;
  invalidations -= before.invalidations;
  conflicts -= before.conflicts;
  return *this;
}

Sets::Sets(std::size_t bytes, std::size_t ways, bool hashed)
    : ways_(ways), sets_(std::max<std::size_t>(bytes / 64 / ways, 1)), hashed_(hashed), line_(sets_ * ways, none) {}

std::size_t Sets::set_of(LineId line) const {
  if (!hashed_) return line % sets_;
  // The highest bits of the product are the ones that spread.
  return std::size_t((line * 0x9E3779B97F4A7C15u >> 32) * sets_ >> 32);
}

bool Sets::use(LineId line) {
  LineId* const set = &line_[set_of(line) * ways_];
  LineId* const at = std::find(set, set + ways_, line);
  if (at == set + ways_) return false;
  std::rotate(set, at, at + 1);
  return true;
}

LineId Sets::insert(LineId line) {
  LineId* const set = &line_[set_of(line) * ways_];
  LineId* const free = std::find(set, set + ways_ - 1, none);
  const LineId gone = *free;
  *free = line;
  std::rotate(set, free, free + 1);
  return gone;
}

bool Sets::remove(LineId line) {
  LineId* const set = &line_[set_of(line) * ways_];
  LineId* const at = std::find(set, set + ways_, line);
  if (at == set + ways_) return false;
  *at = none;
  return true;
}

Caches::Caches(const Machine& machine, int cores, std::size_t lines)
    : machine_(machine),
      cores_(machine.cores > 0 ? int(machine.cores) : cores),
      groups_((cores + cores_ - 1) / cores_),
      groups_per_socket_(std::max(1, int(machine.cpus / std::max(1.0, machine.sockets)) / cores_)),
      holders_(lines),
      owner_(lines),
      clock_(std::size_t(cores)),
      served_(std::size_t(groups_)) {
  auto sets = [](double bytes, double ways, bool hashed) {
    return Sets(std::size_t(bytes), std::size_t(ways), hashed);
  };
  for (int core = 0; core < cores; ++core)
    core_.push_back({sets(machine.l1, machine.l1_ways, false), sets(machine.l2, machine.l2_ways, false),
                     sets(machine.l2, machine.l2_ways, true)});
  // Last-level caches hash addresses over their sets.
  for (int group = 0; group < groups_; ++group) cache_.push_back(sets(machine.cache, machine.cache_ways, true));
}

void Caches::wait(int core, double& server, double service, double latency) {
  double& clock = clock_[std::size_t(core)];
  server = std::max(server, clock) + service;
  clock = std::max(server, clock + latency);
}

void Caches::drop_from_group(int group, LineId line, int but) {
  const int end = std::min(int(core_.size()), (group + 1) * cores_);
  for (int core = group * cores_; core < end; ++core) {
    if (core == but) continue;
    Core& other = core_[std::size_t(core)];
    other.l1.remove(line);
    other.l2.remove(line);
    other.l2_hashed.remove(line);
  }
}

void Caches::fill(int core, LineId line) {
  const int group = group_of(core);
  Sets& cache = cache_[std::size_t(group)];
  if (!cache.use(line)) {
    const LineId gone = cache.insert(line);
    if (gone != Sets::none) {
      drop_from_group(group, gone, -1);
      holders_[gone] &= ~(std::uint64_t{1} << group);
      if (owner_[gone] && group_of(owner_[gone] - 1) == group) {
        owner_[gone] = 0;
        ++counts_.written;
      }
    }
  }
  holders_[line] |= std::uint64_t{1} << group;
  Core& own = core_[std::size_t(core)];
  // The L1 holds nothing that the L2 has lost.
  if (const LineId gone = own.l2.insert(line); gone != Sets::none) own.l1.remove(gone);
  own.l1.insert(line);
}

// A line that the core's own caches lack.
void Caches::fetch(int core, LineId line) {
  const int group = group_of(core);
  const std::uint64_t holders = holders_[line];
  const double copy = machine_.copy * 64;
  ++counts_.l2_misses;
  if (holders >> group & 1) {
    ++counts_.near;
    wait(core, served_[std::size_t(group)], copy / 2 / cores_, copy / 2);
  } else if (holders) {
    const int from = owner_[line] ? group_of(owner_[line] - 1) : __builtin_ctzll(holders);
    const bool other_socket = from / groups_per_socket_ != group / groups_per_socket_;
    ++counts_.far;
    counts_.sockets += other_socket;
    wait(core, served_[std::size_t(from)], copy / cores_, other_socket ? 2 * copy : copy);
  } else {
    ++counts_.memory;
    wait(core, memory_free_, machine_.all_memory * 32, machine_.memory * 32);
  }
  fill(core, line);
}

bool Caches::in_private(int core, LineId line) {
  Core& own = core_[std::size_t(core)];
  ++counts_.accesses;
  clock_[std::size_t(core)] += 0.2;
  const bool without_conflicts = own.l2_hashed.use(line);
  if (!without_conflicts) own.l2_hashed.insert(line);
  if (own.l1.use(line)) {
    own.l2.use(line);
    return true;
  }
  ++counts_.l1_misses;
  if (own.l2.use(line)) {
    own.l1.insert(line);
    clock_[std::size_t(core)] += 0.5;
    return true;
  }
  counts_.conflicts += without_conflicts;
  return false;
}

void Caches::read(int core, LineId line) {
  if (!in_private(core, line)) fetch(core, line);
  if (owner_[line] != core + 1 && owner_[line]) owner_[line] = 0;  // its data are shared and written back
}

void Caches::take_from_others(int core, LineId line) {
  const int group = group_of(core);
  if (owner_[line] == core + 1) return;
  bool taken = false;
  for (std::uint64_t left = holders_[line] & ~(std::uint64_t{1} << group); left; left &= left - 1) {
    const int other = __builtin_ctzll(left);
    cache_[std::size_t(other)].remove(line);
    drop_from_group(other, line, -1);
    // As long as a transfer: the line's word has to go there and back.
    if (!taken) wait(core, served_[std::size_t(other)], machine_.copy * 64 / cores_, machine_.copy * 64);
    taken = true;
  }
  drop_from_group(group, line, core);
  holders_[line] &= std::uint64_t{1} << group;
  counts_.invalidations += taken;
}

void Caches::write(int core, LineId line) {
  if (!in_private(core, line)) fetch(core, line);
  take_from_others(core, line);
  owner_[line] = std::uint16_t(core + 1);
}

void Caches::stream(int core, LineId line) {
  ++counts_.accesses;
  take_from_others(core, line);
  const int group = group_of(core);
  drop_from_group(group, line, -1);
  cache_[std::size_t(group)].remove(line);
  holders_[line] = 0;
  owner_[line] = 0;
  ++counts_.written;
  wait(core, memory_free_, machine_.all_memory * 32, machine_.memory * 64);
}

void Caches::meet() { std::ranges::fill(clock_, *std::ranges::max_element(clock_)); }

}  // namespace nearfield::simulation
