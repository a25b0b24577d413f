// Caches of a machine, and groups of cores that share a last-level cache, by hwloc: of this machine, a synthetic
// description or an XML file. NUMA nodes: memory_nodes.hpp.
#pragma once
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/machine/cpus.hpp"

namespace nearfield::machine {

struct Cache {
  int level;
  std::size_t bytes, line;
  CpuSet cpus;
};

struct Topology {
  int cores = 0, packages = 0;
  std::vector<Cache> caches;
  std::vector<CpuSet> l3_groups;        // cores that share a last-level cache
  std::size_t l1d = 0, l2 = 0, l3 = 0;  // bytes of one instance

  static Result<Topology> load();
  static Result<Topology> synthetic(const std::string& hwloc_description);  // "pack:2 numa:2 l3:4 core:4 pu:2"
  static Result<Topology> from_xml(const std::string& path);
};

}  // namespace nearfield::machine
