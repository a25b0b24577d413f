// Barriers: all members wait until a word of every member has been published. Three kinds, by the shape:
//
//   flags   small teams: each member reads that word of all others, one line each
//   gate    oversubscribed teams (more ranks than CPUs): one counter instead of p lines, and only the last to arrive
//           wakes the sleepers
//   tree    large teams with a CPU for every member, along the tree whose root is the first member (team/tree.hpp),
//           in which every word has one writer. In the n-th meeting along it:
//
//   a member   waits until `gathered` of each child is n, stores n to its own (the root does not)
//              waits until `released` of its parent is n, stores n to its own (leaves do not)
#pragma once
#include "engine/context/waits.hpp"

namespace nearfield::context {

class Barrier {
 public:
  Barrier(const ContextMembers& members, Waits& waits);
  void join_tree();  // once the team's shape is known

  // Waits until `word` of every member is at least `value`. pre: ours is.
  template <class Word>
  void meet(Word word, What what, std::uint64_t value) {
    const auto lacking = [&](int m) { return word(*members_.words[m]).load(std::memory_order_relaxed) < value; };
    if (kind_ == Meeting::tree) return meet_along_tree(lacking);
    if (kind_ == Meeting::gate) return meet_at_gate(lacking);
    const int rank = members_.rank, size = members_.size;
    for (int i = 1; i < size; ++i) {
      const int other = rank + i < size ? rank + i : rank + i - size;
      waits_.wait_for(other, word(*members_.words[other]), what, value);
    }
  }
  // Adds us to the gate. Returns whether all have arrived.
  bool arrive();

 private:
  void meet_at_gate(FunctionRef<bool(int)> lacks);
  void meet_along_tree(FunctionRef<bool(int)> lacks);

  const ContextMembers& members_;
  Waits& waits_;
  Meeting kind_ = Meeting::flags;
  std::uint64_t gate_target_ = 0;
  int parent_ = -1;
  std::vector<int> children_;
  std::uint64_t meetings_ = 0;  // along the tree
};

}  // namespace nearfield::context
