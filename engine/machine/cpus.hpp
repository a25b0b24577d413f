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

// The caches of our first CPU.
struct Caches {
  std::size_t largest;  // bytes
  std::size_t own;      // bytes of the largest that no other core shares; 0: unknown
  CpuSet neighbors;     // CPUs that share the last level; none: unknown
  // Returns the first CPU of the last-level cache that all of ours share; -1: they have several, or it is unknown.
  int shared_by(const Cpus& cpus) const;
};
Caches read_caches(const Cpus& cpus, const std::string& root = "");
// Returns the first CPU of the package that has all of ours; -1: they are in several, or it is unknown.
int shared_package(const Cpus& cpus, const std::string& root = "");

// `root` precedes /proc and /sys (tests); the affinity mask is always our own.
Cpus available_cpus(const std::string& root = "");

}  // namespace nearfield::machine
