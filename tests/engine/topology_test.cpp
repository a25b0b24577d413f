#include "engine/machine/topology.hpp"

#include <gtest/gtest.h>

namespace nearfield::memory {
namespace {

TEST(Topology, OfASyntheticTwoSocketMachine) {
  auto t = Topology::synthetic("pack:2 [numa(memory=1073741824)] l3:4(size=33554432) l2:4(size=1048576) core:1 pu:2");
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->packages, 2);
  EXPECT_EQ(t->cores, 32);
  EXPECT_EQ(t->l3_groups.size(), 8u);
  EXPECT_EQ(t->l3_groups[0].count(), 8);
  EXPECT_EQ(t->l3, std::size_t{32} << 20);
  EXPECT_EQ(t->memory.size(), 2u);
  EXPECT_FALSE(Topology::synthetic("nonsense:"));
}

TEST(Topology, OfThisMachine) {
  auto t = Topology::load();
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_GE(t->cores, 1);
}

}  // namespace
}  // namespace nearfield::memory
