// Where the ranks of a communicator live: which node each is on, and which of that node's ranks it is. Nodes are
// numbered by their lowest rank, a node's ranks (its locals) in the order of their ranks. The same on all ranks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace nearfield::hierarchy {

class Placement {
 public:
  // `home`: of each rank, a number that is equal for those on one node. Throws std::bad_alloc.
  explicit Placement(std::span<const int> home);

  int size() const { return int(node_of_.size()); }
  int nodes() const { return int(first_.size()) - 1; }
  int node_of(int rank) const { return node_of_[std::size_t(rank)]; }
  int local_of(int rank) const { return local_of_[std::size_t(rank)]; }
  int ranks_on(int node) const { return first_[std::size_t(node) + 1] - first_[std::size_t(node)]; }
  // The rank that is `local` on `node`.
  int rank(int node, int local) const { return ranks_[std::size_t(first_[std::size_t(node)]) + std::size_t(local)]; }
  // Ranks on the nodes before it.
  int before(int node) const { return first_[std::size_t(node)]; }
  int most() const { return most_; }         // ranks of the largest node
  int least() const { return least_; }       // and of the smallest
  bool equal() const { return equal_; }      // all nodes have as many
  bool blocks() const { return blocks_; }    // each node's ranks follow each other, node by node
  bool striped() const { return striped_; }  // equal, and ranks are dealt to nodes one by one

  // A lane is one rank of each node. There are as many as the largest node has ranks: on smaller ones some serve in
  // several.
  int in_lane(int lane, int node) const { return lane % ranks_on(node); }  // which local

 private:
  std::vector<int> node_of_, local_of_, ranks_, first_;
  int most_ = 0, least_ = 0;
  bool equal_ = true, blocks_ = true, striped_ = true;
};

}  // namespace nearfield::hierarchy
