// Moves messages, from the start of a request to its end.
//
//   sender                                             receiver
//   eager       the record carries the message -------> kept until a receive is posted, copied out
//   rendezvous  the record tells of it (Note) --------> kept until a receive is posted, matched
//     through copy buffers, where these are better: the record names the first
//       fills them                                      empties them (copy_chains.hpp)
//     else it stays where it is
//                 <-- how it moves --------------------- chooses (transfers.hpp)
//       through copy buffers, too, or both copy blocks (single_copy.hpp)
//
// Threads: everything here needs the messenger's lock.
#pragma once
#include "engine/messages/copy_chains.hpp"
#include "engine/messages/protocol_ranges.hpp"
#include "engine/messages/transfers.hpp"

namespace nearfield::messages {

// The protocols and what they need.
struct Protocols {
  // Throws std::bad_alloc.
  Protocols(const MessengerLock& lock, Mailboxes& mailboxes, Channels& channels, Continuations& continuations,
            Counts& counts);

  // ---- sends
  // Returns whether it is on its way, and nothing of `data` is needed any more.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  bool any_waits_for_room() const { return waiting_for_room_ != 0; }
  void start(Request& send, Guard& guard);
  // Withdraws it, as soon as there is room for the question and no thread copies for it.
  void cancel(Request& send);
  // As Messenger::leave().
  bool leave(Request& send, Guard& guard);
  template <class Visit>
  void each_send(Visit visit) const {
    for (const List& list : waiting_) list.each<Request>(visit);
    transfers.each_offered(visit);
    in_progress.sends.each(visit);
  }

  // ---- receives
  // Gives a receive its message. read_what_is_there(): then reads what the sender has filled already.
  void give(Request& receive, const Arrived& message);
  void read_what_is_there(Request& receive, Guard& guard);

  // ---- both
  // Does one step of requests under way. Returns whether any moved.
  bool go_on(Guard& guard, bool all);
  // Whether go_on() has anything to do.
  bool needs_step() const { return any_under_way() || transfers.any_retired(); }
  bool any_under_way() const {
    return waiting_for_room_ || !in_progress.receives.empty() || !in_progress.sends.empty() || transfers.any_offered();
  }
  void end_send(Request& request);
  // Removes it from all lists; the other side may still look at its Transfer.
  void abandon(Request& request);

  Mailboxes& mailboxes;
  Channels& channels;
  Continuations& continuations;
  InProgress in_progress;
  RemoteMemory memory;
  CopyChains chains;
  Transfers transfers;
  const Limits limits;

 private:
  bool dispatch(Request& send, Guard& guard);
  bool send_eagerly(Request& send);
  bool goes_by_buffers(const Request& send, RemoteLayout& where);
  bool begin_in_buffers(Request& send, Guard& guard);
  void flush_waiting(Guard& guard);
  void end_receive(Request& request);

  const MessengerLock& lock_;
  std::vector<List> waiting_;  // per member: sends that wait for room, in order
  bool try_to_cancel(Request& send);
  std::size_t waiting_for_room_ = 0;
  bool cancels_due_ = false;  // some sends have to be cancelled later (Course::to_cancel)
};

}  // namespace nearfield::messages
