// Lets Open MPI start more ranks than it has slots for. Without a setting that makes ranks share CPUs, its launcher
// refuses that.
#pragma once
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

namespace nearfield::tools {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view one : words)
    if (word == one) return true;
  return false;
}

// Returns the ranks that the command line of an mpiexec asks for, of all its programs together; 0 if the command is no
// mpiexec, does not name a number, or places the ranks itself. A second -n after a program's is that program's own.
inline int ranks_asked_for(char** command) {
  std::string_view launcher = *command;
  launcher.remove_prefix(launcher.rfind('/') + 1);
  if (!is_one_of(launcher.substr(0, launcher.find('.')), {"mpiexec", "mpirun", "orterun", "prterun"})) return 0;
  int ranks = 0;
  bool counted = false;  // of the present program
  for (char** word = command + 1; *word; ++word) {
    if (!std::strcmp(*word, ":")) counted = false;
    if (counted) continue;
    std::string_view option = *word;
    if (option.starts_with("--")) option.remove_prefix(1);
    if (is_one_of(option, {"-n", "-np", "-c"}) && word[1]) {
      ranks += std::atoi(*++word);
      counted = true;
    }
  }
  // Options of placement stand before or after the number of ranks. Few programs have arguments of these names.
  for (char** word = command + 1; *word; ++word) {
    std::string_view option = *word;
    if (option.starts_with("--")) option.remove_prefix(1);
    if (is_one_of(option, {"-oversubscribe", "-nooversubscribe", "-map-by", "-hostfile", "-machinefile", "-host", "-H",
                           "-rankfile", "-default-hostfile", "-dvm-uri", "-prtemca"}) ||
        option.starts_with("rmaps_"))
      return 0;
  }
  return ranks;
}

// Returns whether something other than the command line places the ranks: variables or files of Open MPI, or a batch
// system's allocation, which has other slots than this machine.
inline bool placement_is_decided() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE",
                               "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"})
    if (std::getenv(variable)) return true;
  for (char** each = environ; *each; ++each)
    if (!std::strncmp(*each, "OMPI_MCA_rmaps_", 15) || !std::strncmp(*each, "PRTE_MCA_rmaps_", 15)) return true;
  const char* const home = std::getenv("HOME");
  for (const char* file : {"/.openmpi/mca-params.conf", "/.prte/mca-params.conf"}) {
    FILE* const lines = home ? std::fopen((std::string(home) + file).c_str(), "r") : nullptr;
    char line[512];
    bool found = false;
    while (lines && std::fgets(line, sizeof line, lines)) found |= std::strstr(line, "rmaps_") != nullptr;
    if (lines) std::fclose(lines);
    if (found) return true;
  }
  return false;
}

// Returns whether Open MPI counts at least `wanted` slots on this machine: cores, not hardware threads, among the CPUs
// that may be used. To read a core's file takes ten microseconds, so reading ends when enough cores have been found.
inline bool has_slots(int wanted) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return wanted <= 0;
  std::set<std::string> cores;
  if (wanted > CPU_COUNT(&allowed)) return false;
  for (int cpu = 0; cpu < CPU_SETSIZE && int(cores.size()) < wanted; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string name = std::to_string(cpu);
    char threads[512] = "";
    FILE* const file =
        std::fopen(("/sys/devices/system/cpu/cpu" + name + "/topology/thread_siblings_list").c_str(), "r");
    const bool known = file && std::fgets(threads, sizeof threads, file);
    if (file) std::fclose(file);
    cores.insert(known ? threads : name);
  }
  return int(cores.size()) >= wanted;
}

// Sets the variables by which Open MPI 4 and 5 let ranks share CPUs, if the command asks for more ranks than there are
// slots and nothing else decides about placement. Other launchers do not read these variables.
inline void share_cpus_where_needed(char** command) {
  if (has_slots(ranks_asked_for(command)) || placement_is_decided()) return;
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
}

}  // namespace nearfield::tools
