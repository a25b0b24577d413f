// NUMA nodes that this process may use, with bandwidth, latency and distances from hwloc.
//
// hwloc is opened at the first call, since it would cost milliseconds of start-up in every rank. Its functions are
// looked up at run time: a host's own copy is shared, and a hwloc that is absent, or older than memory attributes
// (2.3), is an Error and no failure to load.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/machine/cpus.hpp"

namespace nearfield::machine {

struct MemoryNode {
  // A value for accesses from the CPUs `from`. Linux publishes those of a node's best initiators alone.
  struct Seen {
    CpuSet from;
    std::uint64_t value;
  };
  struct Distance {
    int to;               // a node's number
    std::uint64_t value;  // relative, 10 to itself
  };

  int number = 0;  // the operating system's
  std::size_t bytes = 0;
  CpuSet cpus;                  // CPUs nearest to it
  std::vector<Seen> bandwidth;  // MB/s
  std::vector<Seen> latency;    // ns
  std::vector<Distance> distances;
};

// Returns the nodes in the order of their numbers, without those that have no memory or that the process may not use.
// HWLOC_XMLFILE or HWLOC_SYNTHETIC may describe another machine to hwloc.
Result<std::vector<MemoryNode>> read_memory_nodes();

// The same, read once per process.
const Result<std::vector<MemoryNode>>& memory_nodes();

}  // namespace nearfield::machine
