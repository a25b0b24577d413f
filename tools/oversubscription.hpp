// Whether a launcher is asked for more ranks than Open MPI has slots for, which it refuses unless it is told to share
// CPUs.
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

// The ranks that the command line of an mpiexec asks for, of all its programs together; 0 where it is none, does not
// say how many, or says itself where they go. What stands behind a program's name is the program's.
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
  // Placement is said in front of a program or behind its number of ranks, and seldom among a program's own words.
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

// Whether somebody other than the command line has said how many ranks go where: by the launchers' variables or files,
// or an allocation whose slots are not this machine's.
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

// The slots that Open MPI counts on this machine by itself: cores, not their threads, among the CPUs that may be used.
inline int slots_here() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string name = std::to_string(cpu);
    char threads[512] = "";
    FILE* const file =
        std::fopen(("/sys/devices/system/cpu/cpu" + name + "/topology/thread_siblings_list").c_str(), "r");
    const bool known = file && std::fgets(threads, sizeof threads, file);
    if (file) std::fclose(file);
    cores.insert(known ? threads : name);
  }
  return int(cores.size());
}

// Tells Open MPI, 4 and 5 by the name that each knows, to share CPUs where the command asks for more ranks than it
// would start and nobody has said otherwise. Other launchers do not read that.
inline void share_cpus_where_needed(char** command) {
  if (ranks_asked_for(command) <= slots_here() || placement_is_decided()) return;
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
}

}  // namespace nearfield::tools
