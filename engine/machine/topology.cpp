#include "engine/machine/topology.hpp"

#include <hwloc.h>

#include <memory>

namespace nearfield::machine {
namespace {

CpuSet to_set(hwloc_const_bitmap_t bitmap) {
  CpuSet set;
  if (!bitmap) return set;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < int(set.bits.size());
       cpu = hwloc_bitmap_next(bitmap, cpu))
    set.bits.set(cpu);
  return set;
}

template <class Source>
Result<Topology> read(const char* what, Source source) {
  hwloc_topology_t raw;
  if (hwloc_topology_init(&raw)) return system_error("hwloc_topology_init");
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owner(raw, hwloc_topology_destroy);
  // Devices are not needed, and take the longest to discover.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (source(raw) || hwloc_topology_load(raw)) return system_error(std::string("reading the topology of ") + what);

  Topology t;
  t.cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  t.packages = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE);
  for (int level = 1; level <= 3; ++level) {
    const hwloc_obj_type_t type = level == 1 ? HWLOC_OBJ_L1CACHE : level == 2 ? HWLOC_OBJ_L2CACHE : HWLOC_OBJ_L3CACHE;
    for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(raw, type, o));) {
      t.caches.push_back({level, std::size_t(o->attr->cache.size), o->attr->cache.linesize, to_set(o->cpuset)});
      (level == 1 ? t.l1d : level == 2 ? t.l2 : t.l3) = std::size_t(o->attr->cache.size);
      if (level == 3) t.l3_groups.push_back(to_set(o->cpuset));
    }
  }
  if (t.l3_groups.empty()) {  // no L3: the package is the group
    for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PACKAGE, o));)
      t.l3_groups.push_back(to_set(o->cpuset));
  }
  return t;
}

}  // namespace

Result<Topology> Topology::load() {
  return read("this machine", [](hwloc_topology_t) { return 0; });
}

Result<Topology> Topology::synthetic(const std::string& description) {
  return read("a synthetic description",
              [&](hwloc_topology_t t) { return hwloc_topology_set_synthetic(t, description.c_str()); });
}

Result<Topology> Topology::from_xml(const std::string& path) {
  return read(path.c_str(), [&](hwloc_topology_t t) { return hwloc_topology_set_xml(t, path.c_str()); });
}

}  // namespace nearfield::machine
