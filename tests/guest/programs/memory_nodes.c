/* The NUMA nodes as hwloc knows them, one line each: number in the OS, bytes, CPUs (hexadecimal), bandwidth in MB/s and
   latency in ns from these CPUs, bytes of a cache in front. What is not known is 0. */
#include <hwloc.h>
#include <stdio.h>

static unsigned long long from_local_cpus(hwloc_topology_t topology, hwloc_memattr_id_t what, hwloc_obj_t node) {
  struct hwloc_location cpus = {.type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = node->cpuset};
  hwloc_uint64_t value = 0;
  return hwloc_memattr_get_value(topology, what, node, &cpus, 0, &value) == 0 ? value : 0;
}

int main(void) {
  hwloc_topology_t topology;
  hwloc_topology_init(&topology);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_MEMCACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) != 0) return 1;
  for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
    char cpus[64];
    hwloc_bitmap_snprintf(cpus, sizeof cpus, node->cpuset);
    const hwloc_obj_t above = node->parent;
    printf("%u %llu %s %llu %llu %llu\n", node->os_index, (unsigned long long)node->attr->numanode.local_memory, cpus,
           from_local_cpus(topology, HWLOC_MEMATTR_ID_BANDWIDTH, node),
           from_local_cpus(topology, HWLOC_MEMATTR_ID_LATENCY, node),
           above->type == HWLOC_OBJ_MEMCACHE ? (unsigned long long)above->attr->cache.size : 0);
  }
  hwloc_topology_destroy(topology);
}
