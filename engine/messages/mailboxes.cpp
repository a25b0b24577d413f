#include "engine/messages/mailboxes.hpp"

#include "engine/base/log.hpp"

namespace nearfield::messages {

Mailboxes::Mailboxes(team::Team& base)
    : process_(base.process()),
      pair_costs_(base.shape().machine.near_pair),
      me_(base.rank()),
      count_(base.size()),
      condemned_(std::size_t(base.size())) {
  for (int r = 0; r < count_; ++r) {
    base_.push_back(base.segment_of(r));
    peer_.push_back(base.peer(r));
  }
  mailbox_.resize(base_.size());
}

// Not yet touched pages are zero: cells cost memory as they are first used.
std::uint64_t Mailboxes::make_own() {
  const auto offset = process_.arena().allocate(sizeof(MessageMailbox), 4096);
  if (!offset) return 0;
  own_ = &at<MessageMailbox>(me_, *offset);
  own_->tail.store(0, std::memory_order_relaxed);
  own_->head.store(0, std::memory_order_relaxed);
  own_->answered.store(0, std::memory_order_relaxed);
  own_->asleep.store(0, std::memory_order_relaxed);
  own_->elsewhere.store(0, std::memory_order_relaxed);
  for (Cell& cell : own_->cell) cell.busy.store(0, std::memory_order_relaxed);
  return *offset;
}

void Mailboxes::meet(std::span<const std::uint64_t> offsets) {
  for (int r = 0; r < count_; ++r) mailbox_[std::size_t(r)] = &at<MessageMailbox>(r, offsets[std::size_t(r)]);
}

void Mailboxes::condemn(int member) {
  if (condemned_[std::size_t(member)].exchange(true, std::memory_order_relaxed)) return;
  log_line(LogLevel::error,
           "rank %d of those on this node (process %d) has written data into shared memory that are not a message",
           member, member == me_ ? 0 : int(peer(member).pid));
}

void Mailboxes::wake_blocked(int member) const {
  wake(member);
  auto& elsewhere = of(member).elsewhere;
  if (elsewhere.load(std::memory_order_relaxed) == 0) return;
  const Reference where = elsewhere.exchange(0, std::memory_order_acquire);  // SYNC: elsewhere
  if (where) at<waiting::WakeWord>(int(where >> 48) - 1, where & 0xffff'ffff'ffff).wake();
}

void Mailboxes::asleep_on(waiting::WakeWord* word) const {
  if (word == &own_->wake_word) return;  // wake() rings it
  // As a rule in our own segment; where all wait for one event, in that of the team's first member.
  int owner = me_;
  auto lies_in = [&](int r) {
    return r == me_ ? process_.segment().contains(word, sizeof *word) : peer(r).segment.contains(word, sizeof *word);
  };
  if (word && !lies_in(owner))
    for (owner = count_ - 1; owner >= 0 && !lies_in(owner);) --owner;
  const Reference where = !word || owner < 0 ? 0
                                             : std::uint64_t(owner + 1) << 48 |
                                                   std::uint64_t(reinterpret_cast<std::byte*>(word) - base(owner));
  own_->elsewhere.store(where, std::memory_order_release);  // SYNC: elsewhere
}

}  // namespace nearfield::messages
