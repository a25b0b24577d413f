// Nearfield's variables: a control variable for every setting (engine/settings/settings.cpp), performance variables for
// the counts of the statistics (mpi/shim/statistics/counts.hpp). Both lists are made of those rows and never change.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/settings/settings.hpp"
#include "mpi/shim/process/host.hpp"

namespace nearfield::mpi::tools {

// Control variables have the names of the environment variables.
inline std::span<const SettingRow> control_variables() { return settings_table(); }
std::string description(const SettingRow& setting);
// Returns the value in force in this process.
SettingValue in_force(const SettingRow& setting);

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
