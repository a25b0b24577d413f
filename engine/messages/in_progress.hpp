// Messages that are under way on this side: copied in steps, one in each poll.
//
// Threads: everything here needs the messenger's lock; a step may let it go for the request that it marks busy.
#pragma once
#include "engine/messages/request.hpp"

namespace nearfield::messages {

// A list whose entries get their step in turn.
class TurnList {
 public:
  bool empty() const { return list_.next == &list_ || (list_.next == &turn_ && turn_.next == &list_); }
  void push(Link& link) { list_.push(link); }
  // `visit` may remove what it is given.
  template <class Visit>
  void each(Visit visit) const {
    list_.each<Request>(visit);
  }

  // Does one step of the requests that can. Returns whether any moved. `step(request)`: returns whether it moved;
  // `end(request)`: called if its way is State::done then.
  //
  // Tries the oldest first, since peers serve requests in order as a rule, then the newest, which may be of another
  // peer, then some of the others in turn, so that the cost of a poll is bounded. One of the others that moves goes to
  // the front. `all`: the last poll before a sleep, which should miss nothing. A busy request stays in its place, so
  // the walk can go on from it after the lock was released.
  template <class Step, class End>
  bool go_on(bool all, Step step, End end) {
    constexpr int looks = 16, looks_at_newest = 8;  // in vain, at the oldest and at others
    constexpr int idle_looks = 256;                 // at others, in a poll that has nothing else to do
    constexpr int looks_before_sleep = 4096;        // at others
    bool progress = false;
    int in_vain = 0;
    auto walk = [&](Link* link, int most) {
      while (link != &list_ && in_vain < most) {
        if (link == &turn_) {
          link = link->next;
          continue;
        }
        Request& request = *static_cast<Request*>(link->owner);
        const bool moved = !request.busy && step(request);
        progress |= moved;
        in_vain += !moved;
        link = link->next;
        if (request.way == State::done) {
          end(request);
        } else if (moved && most > looks && !request.busy) {
          request.under_way.remove();
          request.under_way.insert_before(*list_.next);
        }
      }
      return link;
    };
    Link* link = walk(list_.next, looks);
    if (link == &list_) return progress;
    if (!turn_.linked()) turn_.insert_before(*link);
    Link* newest = &list_;
    for (int i = 0; i < looks_at_newest; ++i) newest = newest->previous;
    walk(newest, in_vain + looks_at_newest);
    link = turn_.linked() ? turn_.next : list_.next;
    link = walk(link, in_vain + (all ? looks_before_sleep : progress ? looks : idle_looks));
    if (turn_.linked()) turn_.remove();
    if (link != &list_) turn_.insert_before(*link);
    return progress;
  }

 private:
  List list_;
  Link turn_;  // without owner; stands before the request that is tried next
};

struct InProgress {
  TurnList sends, receives;
};

}  // namespace nearfield::messages
