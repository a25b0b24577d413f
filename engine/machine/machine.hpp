// Figures of a machine, from which costs of algorithms are estimated, and their file.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "engine/base/result.hpp"

namespace nearfield::machine {

// Times of bytes between two cores, in nanoseconds per byte (`line`: in all), by the fastest kind of stores and loads.
struct PairCosts {
  double line = 0;   // a cache line, one way; 0: not measured
  double own = 0;    // a core copies within its private cache
  double copy = 0;   // it copies bytes that the other has just written
  double left = 0;   // the other writes them again: time beyond that of writing them before they were read
  double fill = 0;   // a core fills a copy buffer that has not been used for a while (memory/copy_buffers.hpp)
  double empty = 0;  // the other copies out of that buffer
  double kind = 0;   // that of the stores and loads of fill and empty, as an index (copying::handover_kinds)
  double times = 0;  // how often they have been measured; at once `measured_enough` by a command that runs alone
  double hour = 0;   // when last, in hours since 1970
};

// Times of bytes between nodes, as programs of the host MPI measure them. A *lane* is one rank of each node; many lanes
// send as fast as they can up to the limit of the node's adapter (the max-rate model of Gropp, Olson and Samfass,
// EuroMPI 2016). Unless a file or a calibration says otherwise: InfiniBand of 100 Gbit/s, of which messages of MPI get
// 97 %, with 215 million messages a second (the manufacturer's figure for ConnectX-6). The other figures are assumed:
// 1.5 us through switches and host, three million messages a second of one rank.
struct Network {
  double latency = 1500;       // a short message, one way, both ranks' work included
  double message = 330;        // one lane: from a short message to the next
  double byte = 0.085;         // one lane: of long messages
  double node_message = 4.65;  // all lanes of a node at once
  double node_byte = 0.0825;   // all lanes of a node at once
};

// Times in nanoseconds, per byte where bytes are moved; sizes in bytes.
struct Machine {
  double line = 100;          // a cache line from one core to another, one way
  double near = 0;            // the same between cores that share a last-level cache, if not all cores do; 0: as `line`
  double turn = 1600;         // from one rank to the next on a CPU that both want
  double copy = 0.018;        // per byte: one core copies bytes that another has just written, in cache
  double fold = 0.010;        // per byte of operands: reducing in cache
  double memory = 0.05;       // per byte: one core copies out of cache, the others idle
  double all_memory = 0.035;  // per byte of the node: all cores copy out of cache
  double cache = 0;           // one last-level cache; 0: as the system says
  double cores = 0;           // cores that share one; 0: all of them
  double own = 0;             // the largest cache of a core alone; 0: as the system says
  double span = 0;            // bytes over which copy buffers rotate (memory/copy_buffers.hpp); 0: from the caches
  // For the simulator alone (tools/simulation/caches.hpp).
  double l1 = 32768, l1_ways = 8, l2 = 1 << 20, l2_ways = 8, cache_ways = 16;
  double sockets = 1;
  double cpus = 0;  // CPUs of the node that ranks may use; 0: as the system says
  // Figures of each state of the machine (states.hpp) in which two ranks have measured (calibration.hpp), the shortest
  // line first. A line of 0: not measured, and the other figures are of no particular machine. In a team, near_pair is
  // what its first two members have found, and far_pair holds between members that share no last-level cache.
  PairCosts near_pair{0, 0.012, 0.02, 0.04, 0.016, 0.02}, far_pair, further[2];
  Network network;
  // Returns the times between members; `far`: they share no last-level cache.
  const PairCosts& pair(bool far) const { return far && far_pair.line > 0 ? far_pair : near_pair; }
};

struct MachineField {
  const char* name;
  const char* meaning;
  double& (*value)(Machine& machine);
};
std::span<const MachineField> machine_fields();

// A TOML file of "name = number"; texts and tables are skipped, unknown names are an Error.
Result<Machine> read_machine(const std::string& path);
std::string describe(const Machine& machine);

// Returns the CPU's name, family and model; stored figures are for one CPU model.
std::string cpu_model();
// As read_machine; also an Error if the file is for another CPU model, or names none.
Result<Machine> read_stored_machine(const std::string& path);
// Replaces the file at once: a concurrent reader finds the old file or the new one.
Result<void> store_machine(const std::string& path, const Machine& machine);

// Times of all states that are known, the shortest line first; an entry whose line is 0 is not one.
using PairStates = std::array<PairCosts, 4>;
PairStates pair_states(const Machine& machine);
// Returns the times known of the state in which a line takes that long; may be null.
const PairCosts* known_pair(const Machine& machine, double line);
// Returns the times known of the next state in which a line takes longer, or of the last one; may be null.
const PairCosts* slower_pair(const Machine& machine, double line, bool slowest);
// Returns whether the times of the state in which a line takes that long should be measured in that hour: what was
// measured beside other programs is too long, so jobs measure again, less and less often.
bool to_be_measured(const Machine& machine, double line, double hour);
constexpr double measured_enough = 5;
// Stores measured times in `machine`, as those of their state. What took less before stays, since competitors only
// make it longer, unless `measured.times` is enough.
void learn(Machine& machine, const PairCosts& measured);

}  // namespace nearfield::machine

namespace nearfield {
using machine::cpu_model, machine::machine_fields, machine::MachineField, machine::read_machine,
    machine::read_stored_machine, machine::store_machine, machine::to_be_measured;
using machine::PairCosts, machine::PairStates, machine::Machine, machine::Network;
}  // namespace nearfield
