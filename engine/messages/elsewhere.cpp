// Receives that may be met elsewhere as well: from ranks that are no members, whose messages another MPI carries.
//
//   a receive from anybody     is posted here; a message that has come there meets it by take_out
//   the rank goes elsewhere    it is posted there as well (Request::elsewhere), in the same order
//   then a message comes here  and the oldest receive for it is such a one: is it still to be had (Elsewhere::claim)?
//       yes                    it has been taken back there; matched as any other
//       no                     it was met there, and is out; the message goes on to the next receive
//       later                  the message stays among the unexpected ones, undecided, and so does what its sender
//       sends
//                              after it, since it might have to go first. Asked again at every poll (decide)
//
// What takes a receive back is a token, which goes there and meets the oldest receive that its message would meet. That
// may be a later one than we asked for, when that one has been met already, by a message that is still on its way. Then
// the token's receive is *promised*: to messages with that tag, of which there are as many as tokens (Tokens). It is
// met by nothing else and never posted there again, since it would come after later ones.
//
// A stand-in may not ask: the rank is inside a call of the other MPI. What it finds is undecided until the rank is
// back. But the sender may be waiting for its message to leave, and the rank, in its call, for the sender. So a
// stand-in takes undecided messages in where there is a receive for each: it receives them into memory of ours (a
// SpeculativeReceive), from where they are handed on when it is decided. A synchronous send may so be complete before
// its receive is found to have been met elsewhere; then it is matched by a later one.
#include <new>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

// Receives the message of `early` into its payload.
struct SpeculativeReceive : Request {
  UnexpectedMessage* unexpected = nullptr;
  Request* successor = nullptr;  // the receive that it was matched with meanwhile
  bool wanted = true;            // by anybody
};

namespace {

// But for those that are promised to others.
bool serves(const Entry& entry, const Envelope& message) {
  const std::optional<int>& promised = static_cast<const Request&>(entry).promised;
  return matches(entry.envelope, message) && (!promised || *promised == message.tag);
}

void withdraw_tokens(Tokens*& asked) {
  if (asked) std::exchange(asked, nullptr)->withdraw();
}

}  // namespace

Messenger::Meeting Messenger::meet_elsewhere(const Envelope& message, Tokens*& asked) {
  using Claim = Elsewhere::Claim;
  for (;;) {
    Entry* first = posted_.first(message);
    if (first && !serves(*first, message))
      first = posted_.find_if([&](const Entry& each) { return serves(each, message); });
    auto* const receive = static_cast<Request*>(first);
    Claim claimed = Claim::yes;
    if (receive && receive->elsewhere)
      claimed = standing_in_ ? Claim::later : receive->elsewhere->claim(message.tag, asked);
    if (claimed == Claim::other) continue;
    // A later one may be promised to it. But so may this one, which is not known yet, and the oldest comes first.
    if (claimed == Claim::later) return {nullptr, true};
    if (receive) take(*receive);
    if (claimed == Claim::no) continue;
    withdraw_tokens(asked);
    return {receive, false};
  }
}

void Messenger::take_out(FunctionRef<Request*()> choose) {
  Guard guard(*this);
  if (Request* const met = choose()) take(*met);
}

void Messenger::note_undecided(UnexpectedMessage& message, Tokens* asked) {
  message.undecided = true;
  message.asked = asked;
  ++in_[std::size_t(message.member)].undecided;
  ++undecided_;
}

// It is matched, or has no receive.
void Messenger::settle(UnexpectedMessage& message) {
  withdraw_tokens(message.asked);
  if (!message.undecided) return;
  message.undecided = false;
  --in_[std::size_t(message.member)].undecided;
  --undecided_;
}

// In the order in which they came: what is matched, or not any more, leaves the state of being undecided.
void Messenger::decide(Guard& guard) {
  if (standing_in_) return take_in_undecided();
  for (;;) {
    Meeting met{};
    UnexpectedEntry* const found = unexpected_.find_if([&](const UnexpectedEntry& each) {
      auto& message = const_cast<UnexpectedMessage&>(static_cast<const UnexpectedMessage&>(each));
      In& in = in_[std::size_t(message.member)];
      if (in.held) return false;
      met = meet(message.envelope, message.asked);
      if (met.undecided) {
        if (!message.undecided) note_undecided(message, message.asked);
        in.held = true;
      } else {
        settle(message);
      }
      return met.receive != nullptr;
    });
    if (!found) break;
    unexpected_.remove(*found);
    consume_now(static_cast<UnexpectedMessage&>(*found), *met.receive, guard);
  }
  for (In& in : in_) in.held = false;
}

// Each receive speaks for the message that it would be matched with if none were met elsewhere.
void Messenger::take_in_undecided() {
  unexpected_.find_if([&](const UnexpectedEntry& each) {
    auto& message = const_cast<UnexpectedMessage&>(static_cast<const UnexpectedMessage&>(each));
    if (!message.undecided) return false;
    Entry* const receive = posted_.find_if([&](const Entry& entry) {
      return !static_cast<const Request&>(entry).claimed && serves(entry, message.envelope);
    });
    if (!receive) return false;
    static_cast<Request*>(receive)->claimed = true;
    take_in(message);
    return false;
  });
  posted_.find_if([](Entry& entry) { return static_cast<Request&>(entry).claimed = false; });
}

// Without memory it stays where it is.
void Messenger::take_in(UnexpectedMessage& message) {
  const MessageProtocol& protocol = Protocols::of(message.kind);
  if (protocol.carries) {
    message.kind = Kind::eager;
    if (protocol.acknowledged) acknowledge(message.member, message.transfer, State::done);
    return;
  }
  auto* const taking = new (std::nothrow) SpeculativeReceive;
  if (!taking) return;
  if (!message.fits()) {
    message.longer.reset(new (std::nothrow) std::byte[message.bytes]);
    if (!message.longer) return delete taking;
  }
  taking->reset();
  taking->takes_in = true;
  taking->unexpected = &message;
  taking->data = {message.payload(), message.bytes, {}};
  message.taking = taking;
  ++speculative_;
  message.kind = Kind::eager;
  if (protocol.unkeep) protocol.unkeep(*this, message);
  protocol.deliver(*this, *taking, arrived(message));
}

// The SpeculativeReceive has received its message.
void Messenger::taken_in(Request& request) {
  SpeculativeReceive& taking = static_cast<SpeculativeReceive&>(request);
  UnexpectedMessage& message = *taking.unexpected;
  message.taking = nullptr;
  Request* const successor = taking.successor;
  const bool wanted = taking.wanted;
  message.error = taking.error;
  delete &taking;
  --speculative_;
  if (successor) successor->error = message.error;
  if (successor) finish_eager(*successor, message.member, message.envelope, message.payload(), message.bytes);
  if (successor || !wanted) free_unexpected(message);
}

// pre: the message is out of matching. The receive is complete when it is there.
void Messenger::inherit(UnexpectedMessage& message, Request& request) {
  message.taking->successor = &request;
  request.member = message.member;
}

void Messenger::disinherit(const Request& request) {
  if (!speculative_) return;
  for (Link* link = receiving_.next; link != &receiving_; link = link->next) {
    if (!link->owner) continue;
    auto* const each = static_cast<Request*>(link->owner);
    if (!each->takes_in || static_cast<SpeculativeReceive*>(each)->successor != &request) continue;
    static_cast<SpeculativeReceive*>(each)->successor = nullptr;
    static_cast<SpeculativeReceive*>(each)->wanted = false;
  }
}

}  // namespace nearfield::messages
