// While a rank is in a call that knows nothing of us, messages of ours may need it: a peer may have run out of room for
// what it sends, or wait for a receive that was posted here, and the call may in turn wait for that peer. So a thread
// stands in for the rank until the call returns.
//
//   rank                                      stand-in                          peer
//   lends itself: says where it can be rung   sleeps
//   blocks elsewhere                          takes in what has come, under     is blocked on the rank: rings
//     (something of ours under way: rings)    the messenger's lock, until
//   is back: takes the lock once              nothing moves; sleeps again
//
// The word that is rung is `blocked_wake_word` in our MessageMailbox. The thread is started when the rank is lent for
// the first time; programs that never lend it do not have it. It costs a rank nothing while nobody rings: the messenger
// takes its lock only while the rank is lent. Where there is a helper (helper.hpp) that one does its work.
#pragma once
#include <atomic>
#include <mutex>

#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

class Helper;

class StandIn {
 public:
  // pre: neither this nor the messenger is ever destroyed once the rank has been lent.
  explicit StandIn(Messenger& messenger) : messenger_(messenger) {}
  // From now on that thread does what this one would. Before the rank is first lent.
  void leave_it_to(Helper& helper) { helper_ = &helper; }
  StandIn(const StandIn&) = delete;

  // By every thread that goes where it does not progress anything, each with a take_back() when it returns. False:
  // nobody can need us, or no thread can be had; the call is then made without a stand-in, and nothing is taken back.
  bool lend();
  void take_back();
  bool lent() const { return lent_.load(std::memory_order_relaxed) != 0; }
  // The rank is not lent again, and the thread ends.
  void dismiss() { dismissed_.store(true, std::memory_order_relaxed); }

 private:
  bool start();
  void run();
  // What the rank did before, without the lock, is seen; that it is back, by the lock.
  bool rank_is_back() const { return lent_.load(std::memory_order_acquire) == 0; }  // SYNC: lent

  Messenger& messenger_;
  Helper* helper_ = nullptr;
  std::atomic<std::uint32_t> lent_{0};  // threads that are elsewhere now
  std::atomic<bool> started_{false};
  std::atomic<bool> dismissed_{false};
  std::mutex starting_;
};

}  // namespace nearfield::messages
