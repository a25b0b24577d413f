// The CPUs that this process can really use: affinity mask and cgroup quota.
#pragma once
#include <bitset>
#include <string>

namespace nearfield::memory {

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

// Processes with the same number share a scheduling group, in which a yield lets the others run. 0: all of the node do.
// The kernel makes a group of each session (autogroup), except below control groups that divide the CPUs.
int scheduling_group(const std::string& root = "");

std::size_t last_level_cache();  // bytes
// Bytes of the largest cache that no other core shares, of our first CPU; 0 where nothing is known.
std::size_t private_cache(const Cpus& cpus, const std::string& root = "");
// How many CPUs share its last-level cache; 0 where nothing is known.
std::size_t cache_sharers(const Cpus& cpus, const std::string& root = "");
// Those that share its last-level cache; none where nothing is known.
CpuSet cache_neighbors(const Cpus& cpus, const std::string& root = "");
// The first CPU of the last-level cache that serves all of our CPUs; -1 where they have several, or nothing is known.
int shared_cache(const Cpus& cpus, const std::string& root = "");
int shared_package(const Cpus& cpus, const std::string& root = "");  // the same of a package

// `root` stands before /proc and /sys (tests); the affinity mask is always our own.
Cpus available_cpus(const std::string& root = "");

}  // namespace nearfield::memory
