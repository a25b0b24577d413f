// Work that every poll of the messenger continues: requests that are started when others are complete (Follower),
// operations that wait for room (Stalled), and receives that watch their sender's memory.
//
// Threads: everything needs the messenger's lock, but for count_watchers().
#pragma once
#include <atomic>
#include <utility>

#include "engine/messages/request.hpp"

namespace nearfield::messages {

class Continuations {
 public:
  // Nothing of the request is touched afterwards, unless it has a follower.
  void complete(Request& request) {
    Follower* const follower = request.follower;
    request.completed.store(true, std::memory_order_release);  // SYNC: request-complete
    if (follower) [[unlikely]]
      follower->next = std::exchange(due_, follower);
  }
  bool any_due() const { return due_; }
  void follow(FunctionRef<void(Request&)> start) {
    while (Follower* const follower = due_) {
      due_ = follower->next;
      follower->follow(start);
    }
  }
  void forget(Follower& follower) {
    for (Follower** at = &due_; *at; at = &(*at)->next)
      if (*at == &follower) {
        *at = follower.next;
        return;
      }
  }

  void stall(Stalled& stalled) {
    stalled.stalled.owner = &stalled;
    if (!stalled.stalled.linked()) stalled_.push(stalled.stalled);
  }
  void unstall(Stalled& stalled) {
    if (stalled.stalled.linked()) stalled.stalled.remove();
  }
  bool go_on_with_stalled() {
    bool progress = false;
    for (Link* link = stalled_.next; link != &stalled_;) {
      auto& stalled = *static_cast<Stalled*>(link->owner);
      link = link->next;
      if (!stalled.go_on()) continue;
      stalled.stalled.remove();
      progress = true;
    }
    return progress;
  }

  // Counts receives that watch memory of their senders: while there are any, sleeps are short.
  void count_watchers(int more) { watchers_.fetch_add(more, std::memory_order_relaxed); }

  bool any() const { return due_ || !stalled_.empty() || watchers_.load(std::memory_order_relaxed) > 0; }

 private:
  Follower* due_ = nullptr;
  List stalled_;
  std::atomic<int> watchers_{0};
};

}  // namespace nearfield::messages
