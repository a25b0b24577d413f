// Nearfield's performance variables: the counts of the statistics (mpi/statistics.def). The list never changes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi::tools {

struct PerformanceVariable {
  std::string name, description;
  int of_class;  // MPI_T_PVAR_CLASS_...; a timer's value is a double in seconds, all others are unsigned long long
  int verbosity;
  bool needs_counts;                    // counted only while counting()
  std::function<std::uint64_t()> read;  // of a timer: nanoseconds

  bool is_timer() const { return of_class == MPI_T_PVAR_CLASS_TIMER; }
};
// Raises std::bad_alloc the first time.
const std::vector<PerformanceVariable>& performance_variables();

}  // namespace nearfield::mpi::tools
