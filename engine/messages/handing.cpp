// Messages through copy buffers of the sender (memory/copy_buffers.hpp).
//
//   sender                                             receiver
//   takes a buffer, record (buffers) ----------------> matched, or kept where it is until a receive is posted
//   copies a piece in, filled += piece --------------> copies out what is filled
//   full, and more to come: takes another one, next -> read to its end: released = 1, goes on with the next
//   all is filled: the user's array is free            all is read: the message is there, released = 1
//
// Both copy at the same time, in pieces. Buffers are taken back when they are released, the oldest first, so each of
// them rests for the span of them all; stores to lines that the receiver still has in its cache would wait for it.
//
// A message begins only while an eighth of all is free, one that nobody has matched holds an eighth at most and goes on
// only while a quarter is free, so those that are matched mostly find something. Nobody waits for what others hold,
// though: what is free may lie in pieces, or be held by messages that are received last, and a receiver releases a
// buffer only when it has the next one. A matched message that finds nothing goes on through the spare buffer. One that
// finds nothing to begin with travels in its record, or stays where it is (transfer.cpp).
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/copying/handover.hpp"
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Of one message: the others get their turn, if there are any. A message that its sender hands over as a whole is
// through in one.
int pieces_in_one_poll(const Request& request) { return request.alone() ? 64 : 16; }

// Of messages that wait for their match with buffers of theirs, since every poll looks at them: those behind stay where
// they are (answers.cpp).
constexpr unsigned most_that_wait = 64;

// What one side copies before it tells the other. The first piece is a delay, every piece costs the transfer of a line:
// together they are least at sqrt(bytes * line / time of a byte). That quotient is about 4 KiB on all machines seen,
// near and far; a power of two is good enough.
// The receiver begins sooner when the first pieces are short.
std::uint64_t piece_of(std::uint64_t bytes, std::uint64_t position) {
  constexpr int least = 12, most = 16;
  const std::uint64_t whole = std::uint64_t{1} << std::clamp((int(std::bit_width(bytes - 1)) + least) / 2, least, most);
  return std::min(whole, std::max<std::uint64_t>(position, 2 << least));
}

void fill(std::byte* to, const layout::Data& from, std::uint64_t position, std::uint64_t bytes, copying::Store store) {
  if (from.dense()) copying::copy(to, from.address + position, bytes, store);
  else layout::gather(to, from, position, bytes);
}

void drain(const layout::Data& to, std::uint64_t position, const std::byte* from, std::uint64_t bytes,
           copying::Store store) {
  if (to.dense()) copying::copy(to.address + position, from, bytes, store);
  else layout::scatter(to, position, from, bytes);
}

}  // namespace

std::uint64_t Messenger::longest_buffer() const {
  return std::clamp<std::uint64_t>(buffers_->span() / 16, 4 << 10, 128 << 10);
}

std::uint64_t Messenger::longest_whole() const { return buffers_->span() / 8; }

// ---------------------------------------------------------------- the sender's side

CopyBuffer& Messenger::prepare_buffer(std::uint64_t offset, std::uint64_t whole) {
  auto& buffer = *reinterpret_cast<CopyBuffer*>(process_.segment().base() + offset);
  buffer.filled.store(0, std::memory_order_relaxed);
  buffer.next.store(0, std::memory_order_relaxed);
  buffer.match.store(Match::none, std::memory_order_relaxed);
  buffer.released.store(0, std::memory_order_relaxed);
  buffer.capacity = std::uint32_t(whole - sizeof(CopyBuffer));
  buffer.drain = buffer.sample = 0;
  return buffer;
}

// nullptr: not now.
CopyBuffer* Messenger::take_buffer(std::uint64_t bytes, std::size_t spared, std::uint64_t& offset) {
  constexpr std::uint64_t unit = memory::CopyBuffers::unit;
  const std::uint64_t whole = (sizeof(CopyBuffer) + bytes + unit - 1) / unit * unit;
  if (buffers_->free_bytes() < buffers_->span() / 4) reclaim_buffers();
  offset = buffers_->take(whole, spared);
  return offset ? &prepare_buffer(offset, whole) : nullptr;
}

// For one message that is matched, when there is no other: the two halves in turn. The next one has them when the
// receiver of the last one has read both.
CopyBuffer* Messenger::take_spare(Request& request, std::uint64_t& offset) {
  constexpr std::uint64_t half = spare_buffer_bytes / 2;
  auto released = [&](unsigned turn) {  // pairs with drain_buffers
    return own_buffer(spare_buffer() + turn % 2 * half).released.load(std::memory_order_acquire) != 0;
  };
  if (!spare_user_) {
    const bool gone = spare_turn_ && peer_[spare_member_]->gone();  // nobody reads them any more
    for (unsigned turn = 0; turn < std::min(spare_turn_, 2u); ++turn)
      if (!gone && !released(turn)) return nullptr;
    spare_turn_ = 0;
  } else if (spare_user_ != &request || (spare_turn_ >= 2 && !released(spare_turn_))) {
    return nullptr;
  }
  spare_user_ = &request;
  spare_member_ = request.member;
  offset = spare_buffer() + spare_turn_ % 2 * half;
  ++spare_turn_;
  return &prepare_buffer(offset, half);
}

// From now on it is the receiver's to release.
void Messenger::lend_buffer(std::uint64_t offset) {
  if (offset - spare_buffer() < spare_buffer_bytes) return;
  lent_[lent_end_++ % lent_.size()] = offset;
}

// Takes back what is released, the oldest first; looks at few, since those of a slow receiver may be in the way.
void Messenger::reclaim_buffers() {
  constexpr unsigned looks = 64, slow_ones = 8;
  unsigned slow = 0;
  for (unsigned i = 0; i < looks && slow < slow_ones && lent_begin_ != lent_end_; ++i) {
    const std::uint64_t offset = lent_[lent_begin_++ % lent_.size()];
    auto& buffer = own_buffer(offset);
    if (buffer.released.load(std::memory_order_acquire)) {  // pairs with drain_buffers
      buffers_->put_back(offset, sizeof(CopyBuffer) + buffer.capacity);
    } else {
      lent_[lent_end_++ % lent_.size()] = offset;
      ++slow;
    }
  }
}

// By which kinds the next bytes go to this member.
copying::Handover::Choice Messenger::next_kinds(Out& out, std::uint64_t bytes) {
  if (out.sample.pending && out.box.sample() >> 32 == out.sample.number) {
    out.sample.pending = false;
    const std::uint64_t drained = out.box.sample() & 0xffffffff;
    if (drained != not_drained) out.handover.note(out.sample.kind, out.sample.bytes, out.sample.ticks + drained);
  }
  if (!out.box || out.sample.pending) return {out.handover.best(bytes), false};
  return out.handover.next(bytes);
}

// Whether the message is out of the user's array, and its record on its way.
bool Messenger::hand_over(int member, const Envelope& envelope, const layout::Data& data) {
  Out& out = out_[std::size_t(member)];
  std::uint64_t offset;
  CopyBuffer* const buffer = take_buffer(std::min(data.bytes, longest_buffer()), buffers_->span() / 8, offset);
  if (!buffer) return false;
  const auto choice = next_kinds(out, data.bytes);
  const copying::Kinds kinds = copying::handover_kinds[choice.kind];
  buffer->drain = std::uint32_t(kinds.drain);
  buffer->sample = choice.sample;
  const Handed handed{offset, data.bytes, 0};
  if (buffer->capacity < data.bytes ||
      !push(member, Kind::buffers, envelope, std::as_bytes(std::span(&handed, 1)), {})) {
    buffers_->put_back(offset, sizeof(CopyBuffer) + buffer->capacity);
    return false;
  }
  const std::uint64_t start = choice.sample ? processor::ticks() : 0;
  for (std::uint64_t at = 0; at < data.bytes;) {
    const std::uint64_t bytes = std::min(piece_of(data.bytes, at), data.bytes - at);
    fill(buffer->data + at, data, at, bytes, kinds.fill);
    buffer->filled.store(std::uint32_t(at += bytes), std::memory_order_release);  // pairs with drain_buffers
  }
  if (choice.sample)
    out.sample = {true, choice.kind, std::uint32_t(out.sample.number + 1), data.bytes, processor::ticks() - start};
  lend_buffer(offset);
  wake(member);
  return true;
}

// The record of a message that goes on as a request; false while there is no room for it, or no buffer.
bool Messenger::begin_chain(Request& request) {
  std::uint64_t offset;
  const std::uint64_t bytes = request.data.bytes;
  const bool whole = !request.attended && bytes <= longest_whole();
  const bool may_wait = request.mode == Mode::synchronous || !whole;
  if (may_wait && !request.attended && chains_that_wait_ >= most_that_wait) return false;
  CopyBuffer* const buffer =
      take_buffer(whole ? bytes : std::min(bytes, longest_buffer()), buffers_->span() / 8, offset);
  if (!buffer) return false;
  const bool tells = bytes > buffer->capacity || request.mode == Mode::synchronous;
  const Handed handed{offset, bytes, tells};
  request.part = InBuffers{.chain = {offset, offset}, .tells = tells};
  begin_buffer(request, *buffer);
  if (!push(request.member, Kind::buffers, request.envelope, std::as_bytes(std::span(&handed, 1)), {})) {
    drop_sample(request);
    request.part = {};
    buffers_->put_back(offset, sizeof(CopyBuffer) + buffer->capacity);
    return false;
  }
  request.way = State::staged;
  chains_that_wait_ += tells;
  sending_.push(request.under_way);
  return true;
}

// Before the receiver knows of it.
void Messenger::begin_buffer(Request& request, CopyBuffer& buffer) {
  Out& out = out_[std::size_t(request.member)];
  const auto choice = next_kinds(out, buffer.capacity);
  InBuffers& part = *request.in_buffers();
  part.kind = choice.kind;
  part.sampled = choice.sample;
  buffer.drain = std::uint32_t(copying::handover_kinds[choice.kind].drain);
  buffer.sample = choice.sample;
  if (choice.sample) out.sample = {true, choice.kind, out.sample.number + 1, 0, 0};
}

// Its buffer will not be read.
void Messenger::drop_sample(Request& request) {
  if (!std::exchange(request.in_buffers()->sampled, false)) return;
  auto& sample = out_[std::size_t(request.member)].sample;
  sample.pending = false;
  --sample.number;
}

// The next buffer of a chain; false: not now.
bool Messenger::continue_chain(Request& request, std::uint64_t length) {
  Chain& chain = request.in_buffers()->chain;
  // pairs with accept_buffers
  const bool matched =
      request.offered.transfer || own_buffer(chain.first).match.load(std::memory_order_acquire) == Match::matched;
  if (!matched && chain.position >= longest_whole()) return false;
  std::uint64_t offset;
  const std::size_t spared = !chain.buffer ? buffers_->span() / 8 : matched ? 0 : buffers_->span() / 4;
  CopyBuffer* next = take_buffer(std::min(length - chain.position, longest_buffer()), spared, offset);
  if (!next && matched) next = take_spare(request, offset);
  if (!next) return false;
  begin_buffer(request, *next);
  if (chain.buffer) {
    own_buffer(chain.buffer).next.store(offset, std::memory_order_release);  // pairs with drain_buffers
    if (chain.buffer != chain.first) lend_buffer(chain.buffer);
  } else {
    chain.first = offset;
    request.offered.transfer->first.store(offset, std::memory_order_release);  // pairs with pump_receive
  }
  chain.buffer = offset;
  chain.in_buffer = 0;
  wake(request.member);
  return true;
}

// Whether it filled anything. `length`: bytes of the message that move.
bool Messenger::fill_buffers(Request& request, std::uint64_t length, Guard& guard) {
  InBuffers& part = *request.in_buffers();
  Chain& chain = part.chain;
  bool any_filled = false;
  for (int i = pieces_in_one_poll(request); i > 0 && chain.position < length; --i) {
    if (!chain.buffer || chain.in_buffer == own_buffer(chain.buffer).capacity) {
      if (!continue_chain(request, length)) break;
    }
    CopyBuffer& buffer = own_buffer(chain.buffer);
    const std::uint64_t bytes = std::min(
        {piece_of(length, chain.position), buffer.capacity - std::uint64_t(chain.in_buffer), length - chain.position});
    request.busy = true;
    guard.let_go();
    const std::uint64_t start = part.sampled ? processor::ticks() : 0;
    fill(buffer.data + chain.in_buffer, request.data, chain.position, bytes, copying::handover_kinds[part.kind].fill);
    const std::uint64_t took = part.sampled ? processor::ticks() - start : 0;
    guard.take();
    request.busy = false;
    if (part.sampled) {
      auto& sample = out_[std::size_t(request.member)].sample;
      sample.bytes += bytes;
      sample.ticks += took;
    }
    chain.position += bytes;
    chain.in_buffer += std::uint32_t(bytes);
    buffer.filled.store(chain.in_buffer, std::memory_order_release);  // pairs with drain_buffers
    any_filled = true;
    wake(request.member);
  }
  return any_filled;
}

// A chain that no Transfer goes with.
bool Messenger::pump_chain(Request& request, Guard& guard) {
  const std::uint64_t length = request.data.bytes;
  const InBuffers& part = *request.in_buffers();
  const Match match = part.tells ? own_buffer(part.chain.first).match.load(std::memory_order_acquire)
                                 : Match::none;  // pairs with accept_buffers and withdraw
  if (match == Match::cancelled) {
    for (std::uint64_t at = part.chain.first; at;) {  // nobody reads them
      CopyBuffer& buffer = own_buffer(at);
      at = buffer.next.load(std::memory_order_relaxed);
      buffer.released.store(1, std::memory_order_relaxed);
    }
    drop_sample(request);
    request.cancelled = true;
    request.way = State::done;
    return true;
  }
  const bool filled = fill_buffers(request, length, guard);
  // Who has asked for it back waits for the answer.
  const bool answered = match == Match::matched || (request.mode == Mode::standard && !request.withdrawn);
  if (part.chain.position == length && answered) request.way = State::done;
  return filled || request.way == State::done;
}

bool Messenger::leave(Request& request) {
  Guard guard(*this);
  if (request.complete()) return true;
  const InBuffers* const part = request.offered.transfer || request.busy ? nullptr : request.in_buffers();
  if (!part || part->chain.position < request.data.bytes) return false;
  request.mode = Mode::standard;
  if (pump_chain(request, guard)) end_send(request);
  return request.complete();
}

void Messenger::end_chain(Request& request) {
  if (spare_user_ == &request) spare_user_ = nullptr;
  const InBuffers* const part = request.in_buffers();
  if (!part || !part->chain.first) return;
  const Chain& chain = part->chain;
  if (!request.offered.transfer) chains_that_wait_ -= part->tells;
  lend_buffer(chain.first);
  if (chain.buffer != chain.first) lend_buffer(chain.buffer);
}

// ---------------------------------------------------------------- the receiver's side

void Messenger::accept_buffers(Request& request, const Arrived& message) {
  const int member = message.member;
  const Handed& handed = message.told;
  request.protocol = &Protocols::copy_buffers;
  request.member = member;
  request.envelope = message.envelope;
  request.total = handed.bytes;
  request.received = std::min(handed.bytes, request.data.bytes);
  if (handed.bytes > request.data.bytes) request.error = ErrorKind::truncated;
  request.way = State::staged;
  request.part = InBuffers{.chain = {handed.first, handed.first}};
  request.under_way.owner = &request;
  if (handed.tell) {
    buffer_of(member, handed.first).match.store(Match::matched, std::memory_order_release);  // pairs with pump_chain
    wake(member);
  }
  ++counts_.staged;
  counts_.bytes += request.received;
  receiving_.push(request.under_way);
}

// Whether it read anything; at the end of the message its way is State::done.
bool Messenger::drain_buffers(Request& request, Guard& guard) {
  Chain& chain = request.in_buffers()->chain;
  const int member = request.member;
  bool any_read = false;
  for (int i = pieces_in_one_poll(request); i > 0; --i) {
    CopyBuffer& buffer = buffer_of(member, chain.buffer);
    const std::uint32_t filled = buffer.filled.load(std::memory_order_acquire);  // pairs with fill_buffers
    if (filled == chain.in_buffer && filled < buffer.capacity) break;
    if (filled > chain.in_buffer) {
      const std::uint64_t begin = std::min(chain.position, request.received);
      const std::uint64_t end = std::min(chain.position + filled - chain.in_buffer, request.received);
      request.busy = true;
      guard.let_go();
      const std::uint64_t start = buffer.sample ? processor::ticks() : 0;
      if (begin < end)
        drain(request.data, begin, buffer.data + chain.in_buffer, end - begin, copying::Store(buffer.drain));
      if (buffer.sample) chain.ticks += std::uint32_t(processor::ticks() - start);
      guard.take();
      request.busy = false;
      chain.position += filled - chain.in_buffer;
      chain.in_buffer = filled;
      any_read = true;
    }
    if (chain.position == request.total) {
      if (request.error == ErrorKind::truncated && request.offered.transfer)
        request.total = request.offered.transfer->bytes;
      if (buffer.sample && in_[std::size_t(member)].box) in_[std::size_t(member)].box.tell_sample(chain.ticks);
      buffer.released.store(1, std::memory_order_release);  // pairs with reclaim_buffers
      request.way = State::done;
      break;
    }
    if (chain.in_buffer < buffer.capacity) continue;
    const std::uint64_t next = buffer.next.load(std::memory_order_acquire);  // pairs with continue_chain
    if (!next) break;
    if (buffer.sample && in_[std::size_t(member)].box) in_[std::size_t(member)].box.tell_sample(chain.ticks);
    chain.ticks = 0;
    buffer.released.store(1, std::memory_order_release);  // pairs with reclaim_buffers and take_spare
    wake(member);
    chain.buffer = next;
    chain.in_buffer = 0;
  }
  return any_read;
}

}  // namespace nearfield::messages
