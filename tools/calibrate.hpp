// Measures the figures of this machine by processes on CPUs of their own, in about a second.
#pragma once
#include "engine/machine/machine.hpp"

namespace nearfield {

// What only ranks can measure, they (what changes cores) or those of several nodes (the network), is kept as stored.
Machine calibrate();

// Nanoseconds of a cache line one way between two different CPUs that this process may use, in some milliseconds; 0
// where they did not meet within ten seconds.
double measure_line(int first, int second);

}  // namespace nearfield
