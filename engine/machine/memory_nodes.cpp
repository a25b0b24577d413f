#include "engine/machine/memory_nodes.hpp"

#include <dlfcn.h>

#include <algorithm>

#if __has_include(<hwloc/autogen/config.h>)
#include <hwloc.h>
#endif

namespace nearfield::machine {

#if __has_include(<hwloc/autogen/config.h>)
namespace {

constexpr const char* soname = "libhwloc.so.15";  // of all versions from 2.0 on

struct Hwloc {
  decltype(&hwloc_topology_init) topology_init;
  decltype(&hwloc_topology_load) topology_load;
  decltype(&hwloc_topology_destroy) topology_destroy;
  decltype(&hwloc_get_obj_by_depth) object;
  decltype(&hwloc_bitmap_next) bitmap_next;
  decltype(&hwloc_memattr_get_initiators) initiators;
  decltype(&hwloc_distances_get_by_name) distances;
  decltype(&hwloc_distances_release) release;

  static Result<Hwloc> open() {
    void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return Error{std::string("hwloc cannot be loaded (") + dlerror() + "); install libhwloc 2.3 or later"};
    Hwloc found{};
    std::string missing;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function) missing = name;
    };
    find(found.topology_init, "hwloc_topology_init");
    find(found.topology_load, "hwloc_topology_load");
    find(found.topology_destroy, "hwloc_topology_destroy");
    find(found.object, "hwloc_get_obj_by_depth");
    find(found.bitmap_next, "hwloc_bitmap_next");
    find(found.initiators, "hwloc_memattr_get_initiators");
    find(found.distances, "hwloc_distances_get_by_name");
    find(found.release, "hwloc_distances_release");
    if (!missing.empty()) return Error{std::string(soname) + " has no " + missing + "; install libhwloc 2.3 or later"};
    return found;
  }
};

class Reader {
 public:
  Reader(const Hwloc& hwloc, hwloc_topology_t topology) : hwloc_(hwloc), topology_(topology) {}

  std::vector<MemoryNode> nodes() const {
    std::vector<MemoryNode> all;
    for (unsigned i = 0; hwloc_obj_t node = hwloc_.object(topology_, HWLOC_TYPE_DEPTH_NUMANODE, i); ++i)
      if (node->attr->numanode.local_memory)
        all.push_back({int(node->os_index), std::size_t(node->attr->numanode.local_memory), set(node->cpuset),
                       seen(node, HWLOC_MEMATTR_ID_BANDWIDTH), seen(node, HWLOC_MEMATTR_ID_LATENCY), distances(node)});
    std::ranges::sort(all, {}, &MemoryNode::number);
    return all;
  }

 private:
  CpuSet set(hwloc_const_bitmap_t bitmap) const {
    CpuSet cpus;
    if (!bitmap) return cpus;
    for (int cpu = hwloc_.bitmap_next(bitmap, -1); cpu >= 0 && cpu < int(cpus.bits.size());
         cpu = hwloc_.bitmap_next(bitmap, cpu))
      cpus.bits.set(std::size_t(cpu));
    return cpus;
  }

  std::vector<MemoryNode::Seen> seen(hwloc_obj_t node, hwloc_memattr_id_t attribute) const {
    hwloc_location from[256];
    hwloc_uint64_t value[256];
    unsigned count = 256;
    std::vector<MemoryNode::Seen> all;
    if (hwloc_.initiators(topology_, attribute, node, 0, &count, from, value)) return all;
    for (unsigned i = 0; i < std::min(count, 256u); ++i)
      all.push_back(
          {set(from[i].type == HWLOC_LOCATION_TYPE_CPUSET ? from[i].location.cpuset : from[i].location.object->cpuset),
           value[i]});
    return all;
  }

  std::vector<MemoryNode::Distance> distances(hwloc_obj_t node) const {
    std::vector<MemoryNode::Distance> all;
    hwloc_distances_s* matrix = nullptr;
    unsigned count = 1;
    if (hwloc_.distances(topology_, "NUMALatency", &count, &matrix, 0) || count == 0) return all;
    for (unsigned from = 0; from < matrix->nbobjs; ++from) {
      if (matrix->objs[from] != node) continue;
      for (unsigned to = 0; to < matrix->nbobjs; ++to)
        if (matrix->objs[to])
          all.push_back({int(matrix->objs[to]->os_index), matrix->values[from * matrix->nbobjs + to]});
    }
    hwloc_.release(topology_, matrix);
    return all;
  }

  const Hwloc& hwloc_;
  hwloc_topology_t topology_;
};

}  // namespace

Result<std::vector<MemoryNode>> read_memory_nodes() {
  auto hwloc = Hwloc::open();
  if (!hwloc) return hwloc.error();
  hwloc_topology_t topology;
  if (hwloc->topology_init(&topology)) return system_error("hwloc_topology_init");
  // Objects are not filtered, since a node gets its CPUs from the package, cache or group above it. Devices are left
  // out by default.
  Result<std::vector<MemoryNode>> nodes = Error{"hwloc finds no NUMA node"};
  if (hwloc->topology_load(topology)) nodes = system_error("hwloc cannot read the topology");
  else if (auto found = Reader(*hwloc, topology).nodes(); !found.empty()) nodes = std::move(found);
  hwloc->topology_destroy(topology);
  return nodes;
}

#else

// The build has no headers of hwloc for its processor.
Result<std::vector<MemoryNode>> read_memory_nodes() { return Error{"built without hwloc"}; }

#endif

const Result<std::vector<MemoryNode>>& memory_nodes() {
  static const auto* const nodes = new Result<std::vector<MemoryNode>>(read_memory_nodes());
  return *nodes;
}

}  // namespace nearfield::machine
