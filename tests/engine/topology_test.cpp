#include "engine/machine/topology.hpp"

#include <gtest/gtest.h>
#include <hwloc.h>
#include <unistd.h>

#include "engine/machine/memory_nodes.hpp"

namespace nearfield::machine {
namespace {

TEST(Topology, OfASyntheticTwoSocketMachine) {
  auto t = Topology::synthetic("pack:2 [numa(memory=1073741824)] l3:4(size=33554432) l2:4(size=1048576) core:1 pu:2");
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->packages, 2);
  EXPECT_EQ(t->cores, 32);
  EXPECT_EQ(t->l3_groups.size(), 8u);
  EXPECT_EQ(t->l3_groups[0].count(), 8);
  EXPECT_EQ(t->l3, std::size_t{32} << 20);
  EXPECT_FALSE(Topology::synthetic("nonsense:"));
}

TEST(Topology, OfThisMachine) {
  auto t = Topology::load();
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_GE(t->cores, 1);
}

// hwloc writes a description with attributes of memory, and what ranks read of it is the same.
TEST(Topology, NodesOfADescribedMachine) {
  char path[] = "/tmp/nearfield-nodes-XXXXXX";
  ASSERT_GE(mkstemp(path), 0);
  hwloc_topology_t topology;
  ASSERT_EQ(hwloc_topology_init(&topology), 0);
  hwloc_topology_set_synthetic(topology, "numa:3(memory=1073741824) pu:2");
  ASSERT_EQ(hwloc_topology_load(topology), 0);
  const hwloc_obj_t fast = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 2);
  hwloc_location from{};
  from.type = HWLOC_LOCATION_TYPE_CPUSET;
  from.location.cpuset = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 0)->cpuset;
  ASSERT_EQ(hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, fast, &from, 0, 400'000), 0);
  ASSERT_EQ(hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_LATENCY, fast, &from, 0, 120), 0);
  ASSERT_EQ(hwloc_topology_export_xml(topology, path, 0), 0);
  hwloc_topology_destroy(topology);

  setenv("HWLOC_XMLFILE", path, 1);
  const auto nodes = read_memory_nodes();
  unsetenv("HWLOC_XMLFILE");
  unlink(path);
  ASSERT_TRUE(nodes) << nodes.error().text;
  ASSERT_EQ((*nodes).size(), 3u);
  const MemoryNode& third = (*nodes)[2];
  EXPECT_EQ(third.number, 2);
  EXPECT_EQ(third.bytes, std::size_t{1} << 30);
  EXPECT_EQ(third.cpus.list(), "4-5");
  ASSERT_EQ(third.bandwidth.size(), 1u);
  EXPECT_EQ(third.bandwidth[0].value, 400'000u);
  EXPECT_EQ(third.bandwidth[0].from.list(), "0-1");
  ASSERT_EQ(third.latency.size(), 1u);
  EXPECT_EQ(third.latency[0].value, 120u);
  EXPECT_TRUE((*nodes)[0].bandwidth.empty());
}

}  // namespace
}  // namespace nearfield::machine
