// The algorithms of collectives over nodes. Adding one is a function and a row; choosing, forcing, trials, estimates
// and tests go through these rows, beside those of the collectives of one node (collectives/table.hpp).
#pragma once
#include <span>
#include <string_view>

#include "engine/hierarchy/hierarchy.hpp"

namespace nearfield::hierarchy {

struct HierarchyAlgorithm {
  const char* name;
  Collective collective;
  bool (*applies)(const HierarchyShape&, const Call&);
  double (*cost)(const HierarchyShape&, const Call&);  // estimated nanoseconds
  void (*run)(Hierarchy&, const Call&);                // nullptr: the host's own
  const char* about;
  bool (*worth)(const HierarchyShape&, const Call&) = nullptr;  // false: it runs only if forced
};

// All rows of one collective, in the order in which ties are decided; none for those that the host carries always.
std::span<const HierarchyAlgorithm> rows_of(Collective collective);

}  // namespace nearfield::hierarchy
