// Combines the operands of a lane's ranks in the order of nodes, whatever the transfers: every row gives the same bits.
// begin() starts a transfer, middle() combines a share and starts another one if there is more to do, end() completes.
//
//   few bytes, or two nodes   all give everything to all (to the root), who combine it
//   else                      node i combines the i-th share, given by all, and gives it to all (to the root):
//                             2 (N - 1) / N of the bytes cross per node, which is the least
#pragma once
#include "engine/hierarchy/hierarchy.hpp"

namespace nearfield::hierarchy {

class Across {
 public:
  static constexpr int all = -1;
  Across() = default;
  // `root`: the node that gets the result, or all. `call` tells type and operator. Takes slots `slot` and `slot` + 1.
  Across(Hierarchy& hierarchy, int lane, int root, const Call& call, unsigned slot)
      : hierarchy_(&hierarchy), call_(&call), lane_(lane), root_(root), slot_(slot) {}

  // `result` may be `mine`; it may be null where no result is wanted. Both must stay valid until end().
  void begin(const std::byte* mine, std::size_t count, std::byte* result);
  void middle();
  void end();

 private:
  bool gets() const { return root_ == all || root_ == hierarchy_->node(); }
  bool at_once() const;
  std::size_t share(int node) const;  // elements before that node's share
  void fold(std::size_t count, std::byte* result);

  Hierarchy* hierarchy_ = nullptr;
  const Call* call_ = nullptr;
  int lane_ = 0, root_ = all;
  unsigned slot_ = 0;
  const std::byte* mine_ = nullptr;
  std::byte* result_ = nullptr;
  std::size_t count_ = 0, element_ = 0;
  Hierarchy::Room operands_, own_;
  std::vector<std::size_t> bytes_, at_, given_, given_at_;
};

}  // namespace nearfield::hierarchy
