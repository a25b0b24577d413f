#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/tools/variables.hpp"

namespace nearfield::mpi::tools {

std::string description(const SettingRow& setting) {
  return std::string(setting.meaning) + ". Decided by: " + name(setting.decides);
}

SettingValue in_force(const SettingRow& setting) {
  if (const team::Process* const n = process_ever()) return value_of(setting, n->settings());
  std::string complaints;  // MPI_Init complains
  return value_of(setting, read_settings(complaints));
}

}  // namespace nearfield::mpi::tools
