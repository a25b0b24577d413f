// CPUs that this process can use: affinity mask and cgroup quota.
#pragma once
#include <bitset>
#include <string>

namespace nearfield::machine {

struct CpuSet {
  std::bitset<1024> bits;
  int count() const { return int(bits.count()); }
  bool intersects(const CpuSet& other) const { return (bits & other.bits).any(); }
  std::string list() const;  // "0-3,8"
};

struct Cpus {
  CpuSet allowed;
  double quota;  // CPUs' worth of time that the cgroups grant; infinity without a limit
  double available() const { return allowed.count() < quota ? allowed.count() : quota; }
};

// Processes with the same number share a scheduling group, in which a yield lets the others run. 0: there is one for
// the node. The kernel makes a group of each session (autogroup), except below control groups that divide the CPUs.
int scheduling_group(const std::string& root = "");

std::size_t last_level_cache();  // bytes
// Returns the bytes of our first CPU's largest cache that no other core shares; 0: unknown.
std::size_t private_cache(const Cpus& cpus, const std::string& root = "");
// Returns how many CPUs share our first CPU's last-level cache; 0: unknown.
std::size_t cache_sharers(const Cpus& cpus, const std::string& root = "");
// Returns the CPUs that share our first CPU's last-level cache; none: unknown.
CpuSet cache_neighbors(const Cpus& cpus, const std::string& root = "");
// Returns the first CPU of the last-level cache that all of our CPUs share; -1: they have several, or it is unknown.
int shared_cache(const Cpus& cpus, const std::string& root = "");
int shared_package(const Cpus& cpus, const std::string& root = "");  // the same for packages

// `root` precedes /proc and /sys (tests); the affinity mask is always our own.
Cpus available_cpus(const std::string& root = "");

}  // namespace nearfield::machine
