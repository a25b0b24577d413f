// Where the mailbox and the segment of each member are, and how its threads are woken.
//
//   sender                                     owner of the mailbox
//   record (release)                           asleep += 1 (seq_cst)
//   asleep != 0 ?                              looks once more
//     rings wake_word                          sleeps on wake_word, asleep -= 1
//
//   is blocked on the owner, which may sleep   elsewhere = the wake word that it sleeps on (release)
//     in a wait for something else, or whose   looks once more
//     rank is in the host:                     sleeps; elsewhere = 0
//     where = elsewhere.exchange(0) (acquire)  its rank enters the host: elsewhere = the progress thread's word
//     where != 0 ? rings that word             that thread is about to sleep once more: the same again
//                                              its rank leaves the host: elsewhere = 0
//
// A peer that takes the word out of `elsewhere` rings it, so several peers, or one that retries, wake the owner only
// once. The sender has no fence, so it may miss a sleeper, whose sleep is bounded.
//
// Threads: any thread may call any function after meet(), since what they read does not change then, or is atomic.
#pragma once
#include <span>
#include <vector>

#include "engine/messages/blocks.hpp"
#include "engine/team/team.hpp"

namespace nearfield::messages {

class Mailboxes {
 public:
  // Throws std::bad_alloc.
  explicit Mailboxes(team::Team& base);
  // Makes our mailbox in our segment. Returns its offset; 0: there is no memory.
  std::uint64_t make_own();
  void meet(std::span<const std::uint64_t> offsets);  // pre: all members have made theirs

  team::Process& process() const { return process_; }
  // Times of bytes between members near each other (Shape::machine.near_pair).
  const PairCosts& pair_costs() const { return pair_costs_; }
  int me() const { return me_; }
  int count() const { return count_; }
  std::byte* base(int member) const { return base_[std::size_t(member)]; }
  reach::Peer& peer(int member) const { return *peer_[std::size_t(member)]; }  // pre: another member
  // Returns whether its process has ended without MPI_Finalize, or is condemned.
  bool died(int member) const {
    return member != me_ && ((peer(member).gone() && !peer(member).left()) || condemned(member));
  }
  // The same without a system call, once died() has found out.
  bool known_dead(int member) const {
    return member != me_ && ((peer(member).known_gone() && !peer(member).left()) || condemned(member));
  }
  // Called when its shared memory is damaged (Channels::is_sound). Logs that once; from then on it counts as dead.
  void condemn(int member);
  bool condemned(int member) const { return condemned_[std::size_t(member)].load(std::memory_order_relaxed); }
  MessageMailbox& of(int member) const { return *mailbox_[std::size_t(member)]; }
  MessageMailbox& own() const { return *own_; }
  std::uint64_t offset_of(const void* at) const {
    return std::uint64_t(static_cast<const std::byte*>(at) - process_.segment().base());
  }
  template <class Block>
  Block& at(int member, std::uint64_t offset) const {
    return *reinterpret_cast<Block*>(base(member) + offset);
  }
  // Returns whether `bytes` bytes from `offset` on lie in its segment.
  bool reaches(int member, std::uint64_t offset, std::size_t bytes) const {
    const std::size_t size = member == me_ ? process_.segment().size() : peer(member).segment.size();
    return offset <= size && bytes <= size - offset;
  }
  Cell& cell_at(Reference reference) const { return at<Cell>(int(reference >> 48) - 1, reference & 0xffff'ffff'ffff); }

  void wake(int member) const {
    MessageMailbox& mailbox = of(member);
    if (mailbox.asleep.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    mailbox.wake_word.wake();
  }
  // Wakes a member that has to take in our messages before we can go on, also from a wait for something else or in the
  // host.
  void wake_blocked(int member) const;
  // Publishes that a thread of ours is about to sleep on that word; nullptr: that it is awake again.
  void asleep_on(waiting::WakeWord* word) const;

 private:
  team::Process& process_;
  const PairCosts pair_costs_;
  const int me_, count_;
  std::vector<std::byte*> base_;
  std::vector<reach::Peer*> peer_;
  std::vector<MessageMailbox*> mailbox_;
  std::vector<std::atomic<bool>> condemned_;
  MessageMailbox* own_ = nullptr;
};

}  // namespace nearfield::messages
