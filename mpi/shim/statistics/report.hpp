// Reports a rank's statistics at its end: as text on standard error (NEARFIELD_STATS), and as JSON in a file per rank
// (NEARFIELD_STATS_FILE), which nearfield/statistics.py reads. Both have the numbers of table.hpp.
#pragma once
#include "engine/settings/settings.hpp"

namespace nearfield::mpi::statistics {

/// Counts from now on what will be reported.
void begin(const Settings& settings);

/// Writes what is asked for. pre: between MPI_Init and MPI_Finalize.
void report(const Settings& settings);

}  // namespace nearfield::mpi::statistics
