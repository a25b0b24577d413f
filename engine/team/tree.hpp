// The tree of a team, along which members gather and broadcast.
//
// Members form groups on several levels: those that share a last-level cache, those of one package, all. Groups are
// consecutive ranks. The leader of a group is the root, if it is a member, or else the first rank. The children of a
// leader are the other members of its smallest group and, for each larger group that it leads, the leaders of the other
// groups in that. A message up or down crosses from one cache to another once for every group instead of once for every
// member.
//
//   ranks 0 .. 8, groups of 3, root 4:     4 <- 3, 5   0 <- 1, 2   6 <- 7, 8   4 <- 0, 6
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

namespace nearfield::team {

class Tree {
 public:
  // `group`: ranks that share a last-level cache, `package`: that share a package; 0: not known, or all.
  Tree(int size, int group, int package) : size_(size) {
    for (const int span : {group, package}) {
      const int below = levels_ ? span_[levels_ - 1] : 1;
      if (span > below && span < size && span % below == 0) add(below, span);
    }
    add(levels_ ? span_[levels_ - 1] : 1, size);
    --levels_;  // the last is the whole team
  }

  // Ranks below a member and itself: [first, last).
  struct Range {
    int first, last;
    int size() const { return last - first; }
  };
  Range subtree(int rank, int root) const {
    if (rank == root) return {0, size_};
    Range below{rank, rank + 1};
    for (int level = 0; level < levels_; ++level) {
      const Range group = group_of(rank, level);
      if (leader(group, root) != rank) break;
      below = group;
    }
    return below;
  }

  // Returns -1 for the root.
  int parent(int rank, int root) const {
    if (rank == root) return -1;
    for (int level = 0; level < levels_; ++level)
      if (const int lead = leader(group_of(rank, level), root); lead != rank) return lead;
    return root;
  }

  // Calls visit(rank) for `me` and visit(child) for its children, in rank order; a child's subtree begins with itself.
  template <class Visit>
  void each_part(int me, int root, Visit&& visit) const {
    const Range all = subtree(me, root);
    for (int at = all.first; at < all.last; at = at == me ? at + 1 : subtree(at, root).last) visit(at);
  }

  int levels() const { return levels_ + 1; }
  // Ranks of a group of `level`; the last level is the whole team.
  int span(int level) const { return level < levels_ ? span_[level] : size_; }
  // Returns the most members that a group below the whole team has.
  int largest_branch() const { return levels_ ? span_[levels_ - 1] : 1; }

 private:
  static constexpr int widest = 16;  // most parts of a group, which its leader polls one by one

  // Adds a level for groups of `span` ranks, and one in between if they would have too many parts. A small team without
  // cache groups gets that level as well, so that few ranks test every path.
  void add(int below, int span) {
    const int parts = (span + below - 1) / below;
    if (parts > widest || (levels_ == 0 && span == size_ && size_ > 3)) {
      int width = int(std::ceil(std::sqrt(double(parts))));
      while (span < size_ && parts % width) ++width;  // groups must not straddle larger ones
      if (width < parts) span_[levels_++] = below * width;
    }
    span_[levels_++] = span;
  }
  Range group_of(int rank, int level) const {
    const int first = rank / span_[level] * span_[level];
    return {first, std::min(first + span_[level], size_)};
  }
  static int leader(Range group, int root) { return root >= group.first && root < group.last ? root : group.first; }

  int size_, levels_ = 0;
  std::array<int, 6> span_{};  // ranks of a group, growing; each a multiple of the one before
};

}  // namespace nearfield::team
