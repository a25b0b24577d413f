// States of a machine, by how long a cache line takes from one core to another.
//
// Where that is about the same for all cores, the machine has one state: on a mesh the longest path takes half as long
// again as the shortest. Between caches, packages, or virtual CPUs that move, it is several times as long. No border in
// nanoseconds fits both, so lines that have been measured are sorted and split wherever there is a gap:
//
//     o oo ooo o    .           oo ooo o        a tenth of the smaller side is left out on both sides of the gap,
//     [- lower -]              [- upper -]      since a line in ten may have been interrupted
//
// The widest gap comes first, then those of either side. What follows does not depend on the order of the lines.
#pragma once
#include <cstddef>
#include <vector>

namespace nearfield::machine {

// Lines of one state are within this factor of a neighbour. Meshes: 97 to 138 ns is 1.4; caches, packages and virtual
// CPUs that have moved apart: 1.8 and more.
inline constexpr double alike = 1.5;
inline bool like(double a, double b) { return a > 0 && b > 0 && a < alike * b && b < alike * a; }

struct MachineState {
  double low, middle, high;  // ns: nine tenths of its lines are from low to high; middle: their median
  double border;             // lines from here on are of the next state; infinite: there is none
  std::size_t lines;
};

// Of lines in nanoseconds, all above 0. The shortest first; none without lines.
std::vector<MachineState> find_states(std::vector<double> lines);

}  // namespace nearfield::machine

namespace nearfield {
using machine::find_states, machine::like, machine::MachineState;
}  // namespace nearfield
