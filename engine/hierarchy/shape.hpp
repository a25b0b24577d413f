// What conditions and estimates of algorithms over several nodes may depend on: the same on all ranks.
#pragma once
#include "engine/team/shape.hpp"

namespace nearfield::hierarchy {

struct HierarchyShape {
  team::Shape node;  // of the team of a node: node.size = ranks per node, 1: alone
  int nodes = 1, ranks = 1;
  int least = 1;       // ranks of the smallest node
  bool equal = true;   // nodes have as many ranks each
  bool blocks = true;  // ranks placed in blocks
};

}  // namespace nearfield::hierarchy
