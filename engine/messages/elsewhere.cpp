// Receives from anybody, which another MPI library may match as well. It carries the messages of ranks that are no
// members. "There" is that library, "here" this messenger.
//
//   a receive from anybody     is posted here; if a message that has come there meets it, take_out() removes it here
//   the rank goes there        the receive is posted there as well (Request::elsewhere), in the same order
//   then a message comes here  whose oldest receive is posted there as well: may it have it (Elsewhere::claim)?
//       yes                    the receive has been taken back there, and is matched as any other
//       no                     the receive was met there, and is taken out; the message goes on to the next receive
//       later                  not known yet: the message is kept as unexpected and undecided, and so are later ones of
//                              its sender, since they must not overtake it. Every poll asks again (decide)
//
// A token takes a receive back. It is a message of ours to ourselves that goes there and meets the oldest receive that
// the message here would meet. That may be a later receive than the one asked for, if that one has been met already, by
// a message that is still on its way. Then the later receive is *promised*: to messages with that tag, of which there
// are as many as tokens (Tokens). Nothing else may meet it, and it is never posted there again, since it would come
// after later ones.
//
// A progress thread may not ask, since the rank is inside a call of the other library. A message that it finds is
// undecided until the rank is back. But the sender may wait for its message to leave, and the rank, in its call, for
// the sender. So for each undecided message that could have a receive, the progress thread receives the message into
// memory of ours (SpeculativeReceive). From there it is handed on when it is decided. So a synchronous send may be
// complete before its receive is found to have been met there; then a later receive matches it.
#include <new>
#include <utility>

#include "engine/messages/matcher.hpp"
#include "engine/waiting/progress.hpp"

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
  Request* successor = nullptr;  // the receive with which the message was matched meanwhile
  bool wanted = true;            // the message is still to be matched or received
  Link link;                     // in Matcher::speculative_
};

namespace {

// Returns whether the receive may have the message: it is not promised to messages with another tag.
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
      claimed = waiting::own_thread ? Claim::later : receive->elsewhere->claim(message.tag, asked);
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

// The message is decided: it is matched, or there is no receive for it.
void Matcher::settle(UnexpectedMessage& message) {
  withdraw_tokens(message.asked);
  if (!message.undecided) return;
  message.undecided = false;
  --peer(message.member).undecided;
  --undecided_;
}

// Decides messages in order of arrival, except those behind an undecided one of the same member.
void Matcher::decide_all() {
  if (waiting::own_thread) return take_in_undecided();
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
    consume(*found, *met.receive);  // another thread's may be gone now
  }
  for (PerMember& from : peer_) from.held = false;
}

// Takes in each undecided message for which there would be a receive if none were met there.
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

// Receives an undecided message into its own payload. Without memory it stays where it is.
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
