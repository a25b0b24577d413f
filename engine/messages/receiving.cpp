// What arrives: matched, delivered, or kept until its receive is posted.
#include <cstring>
#include <new>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

void Messenger::complete(Request& request) {
  if (request.takes_in) [[unlikely]]
    return taken_in(request);
  Follower* const follower = request.follower;
  request.completed.store(true, std::memory_order_release);  // pairs with Request::complete
  if (follower) [[unlikely]]
    follower->next = std::exchange(due_, follower);
}

// The message for a receive.
void Messenger::give(Request& request, Kind kind, const Arrived& message) {
  if (kind == Kind::eager) [[likely]]
    return finish_eager(request, message.member, message.envelope, message.payload, message.bytes);
  Protocols::of(kind).deliver(*this, request, message);
}

// What lies behind the note of a record, which is the offset of a Transfer or a Handed.
const std::byte* Messenger::read_note(Kind kind, const Record& record, Handed& told, std::uint64_t& bytes) {
  if (kind == Kind::eager) return record.payload;
  const std::size_t note = kind == Kind::withdraw ? sizeof told.first : Protocols::of(kind).note;
  std::memcpy(&told, record.payload, note);
  bytes -= note;
  return record.payload + note;
}

// A receive for which nothing has been taken in, and beside which nothing is under way: if the next message of its
// sender is for it, it has it from the ring, without being posted. Now and then all is polled, since others may wait
// for us.
bool Messenger::receive_next(Request& request, Guard& guard) {
  constexpr unsigned at_a_time = 64;
  In& in = in_[std::size_t(request.member)];
  std::uint64_t word;
  if (!in.box || busy_locked() || ++in.straight % at_a_time == 0) return false;
  const Record* const record = in.box.look(word);
  if (!record || kind_of(word) == Kind::withdraw || !matches(request.envelope, record->envelope)) return false;
  in.came = polls_;
  Handed told{};
  std::uint64_t bytes = bytes_of(word);
  const std::byte* const payload = read_note(kind_of(word), *record, told, bytes);
  give(request, kind_of(word), {int(request.member), record->envelope, told, payload, bytes});
  in.box.take(word);
  read_what_is_there(request, guard);
  return true;
}

// False where there is no memory to keep it: it stays where it is, and its sender stops when there is no more room.
bool Messenger::deliver(int member, std::uint64_t word, const Record& record) {
  const Kind kind = kind_of(word);
  Handed told{};
  std::uint64_t bytes = bytes_of(word);
  const std::byte* const payload = read_note(kind, record, told, bytes);
  if (kind == Kind::withdraw) {
    withdraw(member, told.first);
    return true;
  }
  bool undecided = in_[std::size_t(member)].undecided;  // then it stays behind those
  Tokens* asked = nullptr;
  if (posted_.size() && !undecided) {
    const Meeting met = meet(record.envelope, asked);
    undecided = met.undecided;
    if (met.receive) {
      give(*met.receive, kind, {member, record.envelope, told, payload, bytes});
      return true;
    }
  }
  UnexpectedMessage* const unexpected = keep_unexpected(member, kind, record.envelope, bytes, told, payload);
  if (!unexpected) {
    if (asked) asked->withdraw();
    return false;
  }
  if (undecided) [[unlikely]]
    note_undecided(*unexpected, asked);
  return true;
}

// Some are kept: short messages often come before their receives.
UnexpectedMessage* Messenger::new_unexpected() {
  if (spare_unexpected_.empty()) return new (std::nothrow) UnexpectedMessage;
  UnexpectedMessage* const unexpected = spare_unexpected_.back().release();
  spare_unexpected_.pop_back();
  return unexpected;
}

void Messenger::free_unexpected(UnexpectedMessage& unexpected) {
  unexpected.longer.reset();
  if (spare_unexpected_.size() < spare_unexpected_.capacity()) spare_unexpected_.emplace_back(&unexpected);
  else delete &unexpected;
}

UnexpectedMessage* Messenger::keep_unexpected(int member, Kind kind, const Envelope& envelope, std::uint64_t bytes,
                                              const Handed& told, const std::byte* payload) {
  const MessageProtocol& protocol = Protocols::of(kind);
  const bool copied = protocol.carries && bytes;
  UnexpectedMessage* const unexpected = new_unexpected();
  if (!unexpected) return nullptr;
  unexpected->bytes = protocol.carries ? bytes : told.bytes;
  if (copied && !unexpected->fits()) {
    unexpected->longer.reset(new (std::nothrow) std::byte[bytes]);
    if (!unexpected->longer) return free_unexpected(*unexpected), nullptr;
  }
  unexpected->envelope = envelope;
  unexpected->member = member;
  unexpected->kind = kind;
  unexpected->transfer = told.first;
  unexpected->tell = told.tell != 0;
  unexpected->name = protocol.acknowledged || unexpected->tell ? name_of(member, told.first) : Envelope{};
  unexpected->error = ErrorKind::none;
  if (copied) std::memcpy(unexpected->payload(), payload, bytes);
  if (protocol.keep) protocol.keep(*this, *unexpected);
  ++counts_.unexpected;
  unexpected_.push(*unexpected);
  return unexpected;
}

// A message that is all there leaves the buffer that its sender could use again; whether it did.
bool Messenger::copy_out(UnexpectedMessage& unexpected) {
  CopyBuffer& buffer = buffer_of(unexpected.member, unexpected.transfer);
  if (unexpected.tell || buffer.filled.load(std::memory_order_acquire) != unexpected.bytes) return false;
  if (!unexpected.fits()) {
    unexpected.longer.reset(new (std::nothrow) std::byte[unexpected.bytes]);
    if (!unexpected.longer) return false;
  }
  std::memcpy(unexpected.payload(), buffer.data, unexpected.bytes);
  if (In& in = in_[std::size_t(unexpected.member)]; buffer.sample && in.box) in.box.tell_sample(not_drained);
  buffer.released.store(1, std::memory_order_release);  // pairs with reclaim_buffers
  in_[std::size_t(unexpected.member)].waiting -= unexpected.bytes;
  unexpected.kind = Kind::eager;
  return true;
}

// What is there already is read at once.
void Messenger::consume_now(UnexpectedMessage& message, Request& request, Guard& guard) {
  consume(message, request);
  read_what_is_there(request, guard);
}

void Messenger::read_what_is_there(Request& request, Guard& guard) {
  if (!request.under_way.linked() || request.way != State::staged) return;
  request.protocol->receive(*this, request, guard);
  if (request.way == State::done) end_receive(request);
}

// The message is out of matching and belongs to us.
void Messenger::consume(UnexpectedMessage& unexpected, Request& request) {
  if (unexpected.taking) [[unlikely]]
    return inherit(unexpected, request);
  const MessageProtocol& protocol = Protocols::of(unexpected.kind);
  if (protocol.unkeep) protocol.unkeep(*this, unexpected);
  request.error = unexpected.error;
  give(request, unexpected.kind, arrived(unexpected));
  free_unexpected(unexpected);
}

Arrived Messenger::arrived(UnexpectedMessage& message) {
  return {message.member,
          message.envelope,
          {message.transfer, message.bytes, message.tell},
          message.payload(),
          message.bytes};
}

bool Messenger::probe(const Envelope& wanted, bool take, Found& found) {
  Guard guard(*this);
  if (undecided_) [[unlikely]]
    decide(guard);
  UnexpectedEntry* entry = unexpected_.find(wanted);
  if (!entry) {
    if (!poll_locked(guard)) return false;
    entry = unexpected_.find(wanted);
    if (!entry) return false;
  }
  UnexpectedMessage& unexpected = static_cast<UnexpectedMessage&>(*entry);
  if (unexpected.undecided) return false;
  found = {unexpected.envelope, unexpected.bytes, nullptr};
  if (take) {
    unexpected_.remove(unexpected);
    found.message = &unexpected;
  }
  return true;
}

}  // namespace nearfield::messages
