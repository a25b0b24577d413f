// Measures the figures of this machine, by processes that are each bound to a CPU, in about a second.
#pragma once
#include "engine/machine/machine.hpp"

namespace nearfield {

// Keeps the stored figures of the network, and the costs of bytes that change cores in states that it does not measure.
Machine calibrate();

// Returns the nanoseconds that a cache line takes from one CPU to another, two that this process may use; 0 if this was
// not measured within ten seconds. Takes some milliseconds.
double measure_line(int first, int second);

}  // namespace nearfield
