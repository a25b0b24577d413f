// Matches messages and receives.
//
//   a receive is started    takes the oldest unexpected message for it; else, if its caller waits and nothing else is
//                           under way, the next message in the ring of its sender; else it is posted
//   a message arrives       goes to the oldest posted receive for it; else it is kept as unexpected
//   its sender cancels it   an unexpected message is dropped; the sender learns whether it was
//
// Receives that another library may match as well: elsewhere.cpp.
//
// Threads: everything here needs the messenger's lock, which is released while data that are there already are copied.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

struct SpeculativeReceive;

class Matcher {
 public:
  // Throws std::bad_alloc.
  Matcher(Protocols& protocols, Counts& counts);

  // ---- receives
  std::int64_t receive_at_once(int member, Envelope wanted, std::byte* to, std::uint64_t room);
  void start(Request& receive, Guard& guard);
  // pre: probe() has taken the message out.
  void start_matched(Request& receive, UnexpectedMessage& message, Guard& guard) {
    consume(message, receive);
    protocols_.read_what_is_there(receive, guard);
  }
  // Completes the receive as cancelled if it is not matched yet.
  void cancel(Request& receive);
  // Removes the receive from all lists.
  void abandon(Request& receive);
  // Removes the posted receive that choose() returns, since it is met elsewhere; nullptr: none.
  void take_out(FunctionRef<Request*()> choose) {
    if (Request* const met = choose()) take(*met);
  }
  template <class Visit>
  void each_posted(Visit visit) {
    posted_.each(visit);
  }

  // ---- messages
  // Takes a record in. False: there is no memory to keep its message, so it stays where it is until a later poll. Its
  // sender stops when it has no more room.
  bool deliver(int member, std::uint64_t word, const Record& record);
  bool awaits() const { return posted_.size() != 0; }
  // Returns the oldest unexpected message for that receive; nullptr: there is none, or it is undecided. `take`: removes
  // it from matching.
  UnexpectedMessage* find(const Envelope& wanted, bool take);
  const UnexpectedMessage* oldest() const {
    return unexpected_.find_if([](const UnexpectedMessage&) { return true; });
  }
  // Called in every poll: matches undecided messages as far as the other library can be asked now (elsewhere.cpp).
  void decide() {
    if (undecided_) [[unlikely]]
      decide_all();
  }

  // Whether a poll may be needed for what is under way.
  bool busy() const { return awaits() || protocols_.any_under_way() || protocols_.continuations.any(); }

 private:
  struct PerMember {
    std::uint32_t undecided = 0;  // of its unexpected messages
    std::uint32_t straight = 0;   // number of its receives that found nothing else under way (receive_next)
    bool held = false;            // in decide(): its later messages wait for an undecided one
  };
  static Arrived read(int member, std::uint64_t word, const Record& record);
  static Arrived arrived(UnexpectedMessage& message);
  // One in so many receives that take the next record of a ring polls everything instead, since others may wait for us.
  static constexpr unsigned straight_at_a_time = 64;
  bool receive_next(Request& receive, Guard& guard);
  UnexpectedMessage* allocate();  // nullptr without memory
  void free(UnexpectedMessage& message);
  UnexpectedMessage* keep(const Arrived& message);  // nullptr without memory
  void consume(UnexpectedMessage& message, Request& receive);
  void withdraw(int member, const Envelope& envelope, std::uint64_t transfer);
  void take(Request& receive) {
    posted_.remove(receive);
    receive.posted = false;
  }

  // ---- elsewhere.cpp
  struct Meeting {
    Request* receive;  // out of matching; nullptr: none
    bool undecided;    // not known yet
  };
  // Takes the receive for a message out of matching. `asked`: the message's Tokens; nullptr afterwards if it is
  // decided.
  Meeting meet(const Envelope& message, Tokens*& asked) {
    Request* const first = posted_.oldest(message);
    if ((first && first->elsewhere) || asked) [[unlikely]]
      return meet_elsewhere(message, asked);
    if (first) take(*first);
    return {first, false};
  }
  Meeting meet_elsewhere(const Envelope& message, Tokens*& asked);
  void note_undecided(UnexpectedMessage& message, Tokens* asked);
  void settle(UnexpectedMessage& message);
  void decide_all();
  void take_in_undecided();
  void take_in(UnexpectedMessage& message);
  friend SpeculativeReceive;
  void taken_in(SpeculativeReceive& taking);

  PerMember& peer(int member) { return peer_[std::size_t(member)]; }
  Protocols& protocols_;
  Counts& counts_;
  Table<Request> posted_;
  Table<UnexpectedMessage> unexpected_;
  std::size_t undecided_ = 0;  // unexpected messages
  std::vector<PerMember> peer_;
  std::vector<std::unique_ptr<UnexpectedMessage>> spare_;
  List speculative_;
};

}  // namespace nearfield::messages
