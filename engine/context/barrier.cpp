#include "engine/context/barrier.hpp"

namespace nearfield::context {

Barrier::Barrier(const ContextMembers& members, Waits& waits) : members_(members), waits_(waits) {
  children_.reserve(std::size_t(members.size));  // all memory is allocated before the members agree
}

void Barrier::join_tree() {
  kind_ = members_.shape.meeting;
  parent_ = members_.shape.tree.parent(members_.rank, 0);
  members_.shape.tree.each_part(members_.rank, 0, [&](int member) {
    if (member != members_.rank) children_.push_back(member);
  });
}

bool Barrier::arrive() {
  gate_target_ += std::uint64_t(members_.size);
  // acq_rel: publishes our stores to members that see the sum, and all members' stores to the one that completes it.
  return members_.gate->gate.fetch_add(1, std::memory_order_acq_rel) + 1 == gate_target_;  // SYNC: gate
}

void Barrier::meet_at_gate(FunctionRef<bool(int)> lacks) {
  if (arrive()) return waits_.wake_everybody();
  // SYNC: gate
  waits_.wait([&] { return members_.gate->gate.load(std::memory_order_acquire) >= gate_target_; }, lacks, {everybody});
}

void Barrier::meet_along_tree(FunctionRef<bool(int)> lacks) {
  const std::uint64_t meeting = ++meetings_;
  ContextControlBlock& mine = *members_.mine;
  for (const int child : children_)
    waits_.wait_for(child, members_.words[child]->gathered, What::gathered, meeting, lacks);
  if (parent_ >= 0) {
    mine.gathered.store(meeting, std::memory_order_release);  // SYNC: gathered
    waits_.wake(What::gathered, meeting);
    waits_.wait_for(parent_, members_.words[parent_]->released, What::released, meeting, lacks);
  }
  if (children_.empty()) return;
  mine.released.store(meeting, std::memory_order_release);  // SYNC: released
  waits_.wake(What::released, meeting);
}

}  // namespace nearfield::context
