// The figures of a machine from which the costs of algorithms are estimated, and the file they are kept in.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "engine/result.hpp"

namespace nearfield {

// Times in nanoseconds, per byte where bytes are moved; sizes in bytes.
struct Machine {
  double line = 100;          // a cache line from one core to another, one way
  double near = 0;            // the same where they share a last-level cache, as part of them do; 0: as `line`
  double turn = 1600;         // from one rank to the next on a CPU that both want
  double copy = 0.018;        // per byte: one core copies what another has just written, in cache
  double fold = 0.010;        // per byte of operands: reducing in cache
  double memory = 0.05;       // per byte: one core copies out of cache, the others idle
  double all_memory = 0.035;  // per byte of the node: all cores copy out of cache
  double cache = 0;           // one last-level cache; 0: as the system says
  double cores = 0;           // cores that share one; 0: all of them
  double own = 0;             // the largest cache of a core alone; 0: as the system says
  double span = 0;            // over which copy buffers rotate (memory/copy_buffers.hpp); 0: from the caches
  // For the simulator alone (simulation/caches.hpp): caches of a core, the ways of all, sockets.
  double l1 = 32768, l1_ways = 8, l2 = 1 << 20, l2_ways = 8, cache_ways = 16;
  double sockets = 1;
  double cpus = 0;  // CPUs of the node that ranks may use; 0: as the system says
};

struct MachineField {
  const char* name;
  double Machine::*value;
  const char* meaning;
};
std::span<const MachineField> machine_fields();

// A TOML file of "name = number"; texts and tables are skipped, names that are not a machine's are an Error.
Result<Machine> read_machine(const std::string& path);
std::string describe(const Machine& machine);

}  // namespace nearfield
