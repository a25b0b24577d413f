// A machine's caches, simulated: what copies by many cores cost, seen from few.
//
// Every core has an L1 and an L2, `cores` of them share a last-level cache, all of them sets with least-recently-used
// replacement. A last-level cache holds what its cores hold (inclusive). A line has one owner that may write it, or any
// number of readers; a write takes it from all others; a streaming store takes it from everybody and writes memory.
// Time: a core waits for each line as long as a copy of it takes (Machine::copy, memory), and for its turn at what
// serves it: a last-level cache gives as many lines at once as it has cores, memory as many as all_memory allows.
// Prefetchers, the network between caches and out-of-order execution are not modelled: counts are what to compare,
// times only order of magnitude.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/machine/machine.hpp"

namespace nearfield::simulation {

using LineId = std::uint32_t;

struct Counts {
  std::uint64_t accesses = 0;
  std::uint64_t l1_misses = 0, l2_misses = 0;
  std::uint64_t near = 0;           // L2 misses served within the group that shares a last-level cache
  std::uint64_t far = 0;            // by another group's caches
  std::uint64_t sockets = 0;        // of those, on another socket
  std::uint64_t memory = 0;         // lines read from memory
  std::uint64_t written = 0;        // lines written to memory: evicted ones and streamed ones
  std::uint64_t invalidations = 0;  // writes that had to take a line from somebody
  std::uint64_t conflicts = 0;      // L2 misses that hashed sets would not have had
  Counts& operator-=(const Counts& before);
};

class Sets {
 public:
  Sets(std::size_t bytes, std::size_t ways, bool hashed);
  bool use(LineId line);       // whether it is there; then it is the latest used
  LineId insert(LineId line);  // what had to go for it, `none`
  bool remove(LineId line);
  static constexpr LineId none = ~LineId{0};

 private:
  std::size_t set_of(LineId line) const;
  std::size_t ways_, sets_;
  bool hashed_;
  std::vector<LineId> line_;  // by set, the latest used first
};

class Caches {
 public:
  // `lines`: how many there are; they are numbered from 0.
  Caches(const Machine& machine, int cores, std::size_t lines);
  void read(int core, LineId line);
  void write(int core, LineId line);
  void stream(int core, LineId line);
  const Counts& counts() const { return counts_; }
  double now(int core) const { return clock_[std::size_t(core)]; }  // ns
  void meet();                                                      // all cores wait for the last
 private:
  struct Core {
    Sets l1, l2, l2_hashed;
  };
  int group_of(int core) const { return core / cores_; }
  bool in_private(int core, LineId line);
  void fetch(int core, LineId line);
  void fill(int core, LineId line);
  void drop_from_group(int group, LineId line, int but);
  void take_from_others(int core, LineId line);
  void wait(int core, double& server, double service, double latency);

  Machine machine_;
  int cores_, groups_, groups_per_socket_;
  std::vector<Core> core_;
  std::vector<Sets> cache_;             // of each group
  std::vector<std::uint64_t> holders_;  // by line: groups that hold it
  std::vector<std::uint16_t> owner_;    // by line: core + 1 that has written it last, 0: clean
  std::vector<double> clock_, served_;  // by core; by group: when it is free again
  double memory_free_ = 0;
  Counts counts_;
};

}  // namespace nearfield::simulation
