// The NUMA nodes that this process may use, with what hwloc knows of them: bandwidth, latency, distance.
//
// hwloc is opened when it is first asked, and only then: in every rank it would cost milliseconds of start-up. Its few
// functions are looked up one by one, so nothing is linked to it, a host that has brought its own copy shares it with
// us, and where it is absent, or older than memory attributes (2.3), that is an Error and no failure to load.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/machine/cpus.hpp"

namespace nearfield::memory {

struct MemoryNode {
  // A value as these CPUs see it. Linux publishes those of the best initiators of a node alone.
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
  CpuSet cpus;                  // the nearest to it
  std::vector<Seen> bandwidth;  // MB/s
  std::vector<Seen> latency;    // ns
  std::vector<Distance> distances;
};

// In the order of their numbers; those without memory, or that the process may not use, are left out. What hwloc reads
// instead of this machine where HWLOC_XMLFILE or HWLOC_SYNTHETIC say so.
Result<std::vector<MemoryNode>> read_memory_nodes();

// The same, read once per process.
const Result<std::vector<MemoryNode>>& memory_nodes();

}  // namespace nearfield::memory
