// The tree of a team, for all sizes, roots and machines: everybody below the root once, few ways between groups.
#include "engine/team/tree.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace nearfield::team {
namespace {

// How many steps from `rank` up to the root; every step must be one that the parent knows of.
int depth(const Tree& tree, int rank, int root) {
  int steps = 0;
  while (rank != root && steps < 100) {
    const int parent = tree.parent(rank, root);
    bool known = false;
    tree.each_part(parent, root, [&](int part) { known |= part == rank; });
    if (!known) return -1;
    rank = parent;
    ++steps;
  }
  return steps;
}

void check(int size, int group, int package) {
  const Tree tree(size, group, package);
  const auto where = ::testing::Message() << size << " ranks, groups of " << group << ", packages of " << package;
  for (int level = 1; level < tree.levels(); ++level) {
    ASSERT_GT(tree.span(level), tree.span(level - 1)) << where;
    ASSERT_TRUE(level == tree.levels() - 1 || tree.span(level) % tree.span(level - 1) == 0) << where;
  }
  for (const int root : {0, 1, size / 2, size - 1}) {
    if (root >= size) continue;
    ASSERT_EQ(tree.parent(root, root), -1);
    int crossings = 0;
    for (int rank = 0; rank < size; ++rank) {
      const int steps = depth(tree, rank, root);
      ASSERT_GE(steps, rank == root ? 0 : 1) << where << ", root " << root << ", rank " << rank;
      ASSERT_LE(steps, tree.levels()) << where << ", root " << root << ", rank " << rank;
      // What lies below a member is a stretch, put together from its parts without holes.
      const auto all = tree.subtree(rank, root);
      int at = all.first;
      tree.each_part(rank, root, [&](int part) {
        ASSERT_EQ(part, at) << where << ", root " << root << ", rank " << rank;
        at = part == rank ? part + 1 : tree.subtree(part, root).last;
      });
      ASSERT_EQ(at, all.last) << where << ", root " << root << ", rank " << rank;
      ASSERT_TRUE(rank == root ? all.size() == size : all.size() <= tree.largest_branch()) << where;
      if (group > 0 && rank != root) crossings += rank / group != tree.parent(rank, root) / group;
    }
    ASSERT_EQ(crossings, group > 0 ? (size + group - 1) / group - 1 : 0) << where << ", root " << root;
  }
}

TEST(Tree, HoldsEverybodyOnce) {
  for (int size = 1; size <= 70; ++size) {
    check(size, 0, 0);
    for (const int group : {1, 2, 3, 4, 7, 8, 16}) {
      check(size, group < size ? group : 0, 0);
      check(size, group, 3 * group);
      check(size, group, 12);
    }
  }
  for (const int size : {96, 112, 192, 200, 384, 1000})
    for (const int group : {0, 2, 8, 12, 24, 48, 53}) check(size, group, size / 2);
}

TEST(Tree, HasLevelsForCachesAndPackages) {
  const Tree tree(192, 8, 96);
  ASSERT_EQ(tree.levels(), 3);
  EXPECT_EQ(tree.span(0), 8);
  EXPECT_EQ(tree.span(1), 96);
  EXPECT_EQ(tree.parent(191, 0), 184);
  EXPECT_EQ(tree.parent(184, 0), 96);
  EXPECT_EQ(tree.parent(96, 0), 0);
  EXPECT_EQ(tree.parent(96, 100), 100);
}

TEST(Tree, DividesWideGroups) {
  EXPECT_GE(Tree(64, 0, 0).levels(), 2);
  EXPECT_EQ(Tree(112, 0, 56).span(0), 8);
  EXPECT_EQ(Tree(106, 53, 0).span(0), 53);  // no groups of equal size in it
}

}  // namespace
}  // namespace nearfield::team
