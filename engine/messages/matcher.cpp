#include "engine/messages/matcher.hpp"

#include <cstring>
#include <new>

namespace nearfield::messages {
namespace {

constexpr std::size_t spare_unexpected = 64;  // that are not allocated again: short messages often come too early

}  // namespace

Matcher::Matcher(Protocols& protocols, Counts& counts)
    : protocols_(protocols), counts_(counts), peer_(std::size_t(protocols.mailboxes.count())) {
  spare_.reserve(spare_unexpected);
}

// pre: the record is that of a message.
Arrived Matcher::read(int member, std::uint64_t word, const Record& record) {
  const std::size_t bytes = bytes_of(word);
  Arrived message{member, record.envelope, {0, bytes, 0}, payload_of(record, bytes), bytes};
  if (kind_of(word) == Kind::eager) return message;
  std::memcpy(&message.note, message.payload, sizeof message.note);
  message.payload += sizeof message.note;
  message.bytes -= sizeof message.note;
  return message;
}

std::int64_t Matcher::receive_at_once(int member, Envelope wanted, std::byte* to, std::uint64_t room) {
  constexpr int looks_alone = 128;  // about a microsecond
  std::uint32_t& straight = peer(member).straight;
  if (unexpected_.size() || busy() || (straight + 1) % straight_at_a_time == 0) return -1;
  FastboxReader& ring = protocols_.channels.ring_from(member);
  if (!ring) return -1;
  int looks = protocols_.mailboxes.process().policy().oversubscribed ? 1 : looks_alone;
  std::uint64_t word;
  const Record* record;
  while (!(record = ring.look(word))) {
    if (--looks == 0) return -1;
    ring.ask_ahead();
    processor::await_loads();
  }
  const std::size_t bytes = bytes_of(word);
  if (kind_of(word) != Kind::eager || record->envelope != wanted || bytes > room) return -1;
  copying::copy(to, payload_of(*record, bytes), bytes);
  ++straight;
  protocols_.channels.take(member, word);
  return std::int64_t(bytes);
}

void Matcher::start(Request& receive, Guard& guard) {
  decide();
  UnexpectedMessage* const message = unexpected_.oldest(receive.envelope);
  if (message && !message->undecided) {
    unexpected_.remove(*message);
    return start_matched(receive, *message, guard);
  }
  if (receive.attended && !message && receive.member >= 0 && receive_next(receive, guard)) return;
  receive.posted = true;
  posted_.push(receive);
}

// A receive for which nothing has been taken in, and beside which nothing is under way: if the next message of its
// sender is for it, it has it from the ring, without being posted.
bool Matcher::receive_next(Request& receive, Guard& guard) {
  const int member = receive.member;
  std::uint64_t word;
  if (busy() || ++peer(member).straight % straight_at_a_time == 0) return false;
  const Record* const record = protocols_.channels.look(member, word);
  if (!record || !protocols_.channels.is_sound(member, word, *record) || kind_of(word) == Kind::withdraw ||
      !match(receive.envelope, record->envelope))
    return false;
  protocols_.give(receive, read(member, word, *record));
  protocols_.channels.take(member, word);
  protocols_.read_what_is_there(receive, guard);
  return true;
}

void Matcher::cancel(Request& receive) {
  if (receive.complete() || !receive.posted) return;
  take(receive);
  receive.cancelled = true;
  protocols_.continuations.complete(receive);
}

bool Matcher::deliver(int member, std::uint64_t word, const Record& record) {
  if (kind_of(word) == Kind::withdraw) {
    std::uint64_t transfer;
    std::memcpy(&transfer, payload_of(record, sizeof transfer), sizeof transfer);
    withdraw(member, record.envelope, transfer);
    return true;
  }
  const Arrived message = read(member, word, record);
  bool undecided = undecided_ && peer(member).undecided;  // then it stays behind those
  Tokens* asked = nullptr;
  if (posted_.size() && !undecided) {
    const Meeting met = meet(record.envelope, asked);
    undecided = met.undecided;
    if (met.receive) {
      protocols_.give(*met.receive, message);
      return true;
    }
  }
  UnexpectedMessage* const unexpected = keep(message);
  if (!unexpected) {
    if (asked) asked->withdraw();
    return false;
  }
  if (undecided) [[unlikely]]
    note_undecided(*unexpected, asked);
  return true;
}

UnexpectedMessage* Matcher::allocate() {
  if (spare_.empty()) return new (std::nothrow) UnexpectedMessage;
  UnexpectedMessage* const unexpected = spare_.back().release();
  spare_.pop_back();
  return unexpected;
}

void Matcher::free(UnexpectedMessage& unexpected) {
  unexpected.longer.reset();
  if (spare_.size() < spare_.capacity()) spare_.emplace_back(&unexpected);
  else delete &unexpected;
}

UnexpectedMessage* Matcher::keep(const Arrived& message) {
  UnexpectedMessage* const unexpected = allocate();
  if (!unexpected) return nullptr;
  unexpected->note = message.note;
  unexpected->carried = message.carried();
  if (unexpected->carried && message.bytes) {
    if (!unexpected->make_room()) return free(*unexpected), nullptr;
    std::memcpy(unexpected->payload(), message.payload, message.bytes);
  }
  unexpected->envelope = message.envelope;
  unexpected->member = message.member;
  unexpected->error = ErrorKind::none;
  if (unexpected->lies_in_buffer()) protocols_.chains.keep(*unexpected);
  ++counts_.unexpected;
  unexpected_.push(*unexpected);
  return unexpected;
}

Arrived Matcher::arrived(UnexpectedMessage& message) {
  return {message.member, message.envelope, message.note, message.payload(), message.carried ? message.note.bytes : 0};
}

void Matcher::withdraw(int member, const Envelope& envelope, std::uint64_t transfer) {
  UnexpectedMessage* const unexpected = unexpected_.find_same(
      envelope, [&](const UnexpectedMessage& each) { return each.member == member && each.note.transfer == transfer; });
  if (!unexpected) return;  // matched already
  unexpected_.remove(*unexpected);
  settle(*unexpected);
  free(*unexpected);
  protocols_.transfers.acknowledge(member, transfer, State::cancelled);
}

UnexpectedMessage* Matcher::find(const Envelope& wanted, bool take) {
  UnexpectedMessage* const found = unexpected_.oldest(wanted);
  if (!found || found->undecided) return nullptr;
  if (take) unexpected_.remove(*found);
  return found;
}

}  // namespace nearfield::messages
