// Which message is for which receive: what arrives is given to its receive, or kept until that is posted.
//
//   a receive is started    the oldest unexpected message for it, else the next one in its sender's ring, else posted;
//                           one that waits looks into that ring for a while, where nothing else is under way
//   a message arrives       the oldest posted receive for it, else kept as unexpected
//   its sender takes back   what is kept is dropped and refused
//
// Receives that may be met elsewhere as well: elsewhere.cpp.
//
// Threads: everything here needs the messenger's lock, which is let go while what is there already is copied.
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
  Matcher(const MessengerLock& lock, Protocols& protocols, Counts& counts);

  // ---- receives
  std::int64_t receive_at_once(int member, Envelope wanted, std::byte* to, std::uint64_t room);
  void start(Request& receive, Guard& guard);
  // pre: probe() has taken the message out.
  void start_matched(Request& receive, UnexpectedMessage& message, Guard& guard) {
    consume(message, receive);
    protocols_.read_what_is_there(receive, guard);
  }
  // Complete as cancelled, if it is not matched yet.
  void cancel(Request& receive);
  // It is out of everything.
  void abandon(Request& receive);
  // `choose()`: which posted receive is met elsewhere, nullptr: none.
  void take_out(FunctionRef<Request*()> choose) {
    if (Request* const met = choose()) take(*met);
  }
  template <class Visit>
  void each_posted(Visit visit) {
    posted_.each(visit);
  }

  // ---- messages
  // False where there is no memory to keep it: it stays where it is, and its sender stops when there is no more room.
  bool deliver(int member, std::uint64_t word, const Record& record);
  bool awaits() const { return posted_.size() != 0; }
  // The oldest unexpected message for that receive; `take`: out of matching. nullptr: none that is decided.
  UnexpectedMessage* find(const Envelope& wanted, bool take);
  const UnexpectedMessage* oldest() const {
    return unexpected_.find_if([](const UnexpectedMessage&) { return true; });
  }
  // In every poll: what came while nobody could ask elsewhere.
  void decide(Guard& guard) {
    if (undecided_) [[unlikely]]
      decide_all(guard);
  }

  // Whether a poll may be needed for what is under way.
  bool busy() const { return awaits() || protocols_.any_under_way() || protocols_.continuations.any(); }

 private:
  struct PerMember {
    std::uint32_t undecided = 0;  // of its unexpected messages
    std::uint32_t straight = 0;   // receives that have looked into its ring before they were posted, or might have
    bool held = false;            // decide(): nothing of it goes on
  };
  static Arrived read(int member, std::uint64_t word, const Record& record);
  static Arrived arrived(UnexpectedMessage& message);
  // Now and then all is polled instead, since others may wait for us.
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
  // The receive for a message. `asked`: the message's tokens, none afterwards where it is decided.
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
  void decide_all(Guard& guard);
  void take_in_undecided();
  void take_in(UnexpectedMessage& message);
  friend SpeculativeReceive;
  void taken_in(SpeculativeReceive& taking);

  PerMember& peer(int member) { return peer_[std::size_t(member)]; }
  const MessengerLock& lock_;
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
