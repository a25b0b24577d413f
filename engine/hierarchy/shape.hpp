// What conditions and estimates of algorithms over several nodes may depend on: the same on all ranks.
#pragma once
#include "engine/team/shape.hpp"

namespace nearfield::hierarchy {

struct HierarchyShape {
  team::Shape node;  // of a node's team; node.size: ranks of the largest node, 1: every rank is alone
  int nodes = 1, ranks = 1;
  int least = 1;       // ranks of the smallest node
  bool equal = true;   // nodes have as many ranks each
  bool blocks = true;  // ranks placed in blocks
};

}  // namespace nearfield::hierarchy
