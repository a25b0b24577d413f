// Receives that may be met elsewhere as well: from ranks that are no members, whose messages another MPI carries.
//
//   a receive from anybody     is posted here; a message that has come there meets it by take_out
//   the rank goes elsewhere    it is posted there as well (Request::elsewhere), in the same order
//   then a message comes here  and the oldest receive for it is such a one: is it still to be had (Elsewhere::claim)?
//       yes                    it has been taken back there; matched as any other
//       no                     it was met there, and is out; the message goes on to the next receive
//       later                  the message stays among the unexpected ones, undecided, and so does what its sender
//                              sends after it, since it might have to go first. Asked again at every poll (decide)
//
// What takes a receive back is a token, which goes there and meets the oldest receive that its message would meet. That
// may be a later one than we asked for, when that one has been met already, by a message that is still on its way. Then
// the token's receive is *promised*: to messages with that tag, of which there are as many as tokens (Tokens). It is
// met by nothing else and never posted there again, since it would come after later ones.
//
// A progress thread may not ask: the rank is inside a call of the other MPI. What it finds is undecided until the rank
// is back. But the sender may be waiting for its message to leave, and the rank, in its call, for the sender. So a
// progress thread takes undecided messages in where there is a receive for each: it receives them into memory of ours
// (a SpeculativeReceive), from where they are handed on when it is decided. A synchronous send may so be complete
// before its receive is found to have been met elsewhere; then it is matched by a later one.
#include <new>
#include <utility>

#include "engine/messages/matcher.hpp"

namespace nearfield::messages {

// Receives an unexpected message into its own payload.
struct SpeculativeReceive final : Request, Follower {
  SpeculativeReceive(Matcher& matcher, UnexpectedMessage& message) : matcher(matcher), message(message) {
    reset();
    data = {message.payload(), message.note.bytes, {}};
    follower = this;
    link.owner = this;
  }
  void follow(FunctionRef<void(Request&)>) override { matcher.taken_in(*this); }
  Matcher& matcher;
  UnexpectedMessage& message;
  Request* successor = nullptr;  // the receive that it was matched with meanwhile
  bool wanted = true;            // by anybody
  Link link;                     // in Matcher::speculative_
};

namespace {

// But for those that are promised to others.
bool serves(const Request& receive, const Envelope& message) {
  return match(receive.envelope, message) && (!receive.promised || *receive.promised == message.tag);
}

void withdraw_tokens(Tokens*& asked) {
  if (asked) std::exchange(asked, nullptr)->withdraw();
}

}  // namespace

Matcher::Meeting Matcher::meet_elsewhere(const Envelope& message, Tokens*& asked) {
  using Claim = Elsewhere::Claim;
  for (;;) {
    Request* receive = posted_.oldest(message);
    if (receive && !serves(*receive, message))
      receive = posted_.find_if([&](const Request& each) { return serves(each, message); });
    Claim claimed = Claim::yes;
    if (receive && receive->elsewhere)
      claimed = lock_.by_progress_thread() ? Claim::later : receive->elsewhere->claim(message.tag, asked);
    if (claimed == Claim::other) continue;
    // The receive may be promised to a later message, but this one might still get it. Nobody knows yet, so it waits:
    // receives match the oldest message first.
    if (claimed == Claim::later) return {nullptr, true};
    if (receive) take(*receive);
    if (claimed == Claim::no) continue;
    withdraw_tokens(asked);
    return {receive, false};
  }
}

void Matcher::note_undecided(UnexpectedMessage& message, Tokens* asked) {
  message.undecided = true;
  message.asked = asked;
  ++peer(message.member).undecided;
  ++undecided_;
}

// It is matched, or has no receive.
void Matcher::settle(UnexpectedMessage& message) {
  withdraw_tokens(message.asked);
  if (!message.undecided) return;
  message.undecided = false;
  --peer(message.member).undecided;
  --undecided_;
}

// In the order in which they came: what is matched, or not any more, leaves the state of being undecided.
void Matcher::decide_all(Guard& guard) {
  if (lock_.by_progress_thread()) return take_in_undecided();
  for (;;) {
    Meeting met{};
    UnexpectedMessage* const found = unexpected_.find_if([&](UnexpectedMessage& message) {
      PerMember& from = peer(message.member);
      if (from.held) return false;
      met = meet(message.envelope, message.asked);
      if (met.undecided) {
        if (!message.undecided) note_undecided(message, message.asked);
        from.held = true;
      } else {
        settle(message);
      }
      return met.receive != nullptr;
    });
    if (!found) break;
    unexpected_.remove(*found);
    start_matched(*met.receive, *found, guard);
  }
  for (PerMember& from : peer_) from.held = false;
}

// Each receive speaks for the message that it would be matched with if none were met elsewhere.
void Matcher::take_in_undecided() {
  unexpected_.each([&](UnexpectedMessage& message) {
    if (!message.undecided) return;
    Request* const receive =
        posted_.find_if([&](const Request& each) { return !each.claimed && serves(each, message.envelope); });
    if (!receive) return;
    receive->claimed = true;
    take_in(message);
  });
  posted_.each([](Request& receive) { receive.claimed = false; });
}

// Without memory it stays where it is.
void Matcher::take_in(UnexpectedMessage& message) {
  if (message.carried) {
    if (message.note.transfer) protocols_.transfers.acknowledge(message.member, message.note.transfer, State::done);
    return message.make_carried();
  }
  if (!message.make_room()) return;
  auto* const taking = new (std::nothrow) SpeculativeReceive(*this, message);
  if (!taking) return;
  speculative_.push(taking->link);
  message.taking = taking;
  const Arrived as_it_came = arrived(message);
  if (message.lies_in_buffer()) protocols_.chains.unkeep(message);
  message.make_carried();
  protocols_.give(*taking, as_it_came);
}

// The message is there.
void Matcher::taken_in(SpeculativeReceive& taking) {
  UnexpectedMessage& message = taking.message;
  message.taking = nullptr;
  message.error = taking.error;
  Request* const successor = taking.successor;
  const bool wanted = taking.wanted;
  taking.link.remove();
  delete &taking;
  if (successor) {
    successor->error = message.error;
    protocols_.give(*successor, arrived(message));
  }
  if (successor || !wanted) free(message);
}

// The message is out of matching and belongs to us.
void Matcher::consume(UnexpectedMessage& message, Request& receive) {
  if (message.taking) [[unlikely]] {  // the receive is complete when it is there
    message.taking->successor = &receive;
    receive.member = message.member;
    return;
  }
  if (message.lies_in_buffer()) protocols_.chains.unkeep(message);
  receive.error = message.error;
  protocols_.give(receive, arrived(message));
  free(message);
}

void Matcher::abandon(Request& receive) {
  if (receive.posted) take(receive);
  speculative_.each<SpeculativeReceive>([&](SpeculativeReceive& each) {
    if (each.successor == &receive) each.successor = nullptr, each.wanted = false;
  });
}

}  // namespace nearfield::messages
