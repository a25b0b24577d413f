#include "engine/messages/copy_chains.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Of one message: the others get their turn, if there are any. A message that its sender hands over as a whole is
// through in one.
int pieces_in_one_poll(const Request& request) {
  // A sender that was asked while it may compute goes on in its next call, whenever that is.
  const bool may_compute = request.is_send && request.offered.transfer && !request.attended;
  return request.alone() || may_compute ? 64 : 16;
}

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

void fill_from(const layout::Data& from, std::uint64_t position, std::byte* to, std::uint64_t bytes,
               copying::Store store) {
  if (from.dense()) copying::copy(to, from.address + position, bytes, store);
  else layout::gather(to, from, position, bytes);
}

void drain_into(const layout::Data& to, std::uint64_t position, const std::byte* from, std::uint64_t bytes,
                copying::Store store) {
  if (to.dense()) copying::copy(to.address + position, from, bytes, store);
  else layout::scatter(to, position, from, bytes);
}

}  // namespace

CopyChains::CopyChains(Mailboxes& mailboxes, Channels& channels, InProgress& in_progress, Counts& counts)
    : mailboxes_(mailboxes),
      channels_(channels),
      in_progress_(in_progress),
      counts_(counts),
      pool_(mailboxes),
      peer_(std::size_t(mailboxes.count())) {
  // Stores that suit another state take six times as long, and what is tried against copy buffers would win.
  const PairCosts& pair = mailboxes.pair_costs();
  if (pair.line > 0 && pair.kind < double(copying::handover_kinds.size()))
    copying::Handover::expect(std::uint8_t(pair.kind));
}

// ---------------------------------------------------------------- the sender's side

// By which kinds the next bytes go to this member, through that buffer.
copying::Handover::Choice CopyChains::next_kinds(int member, std::uint64_t bytes, const BufferPool::Taken& taken) {
  PerMember& peer = peer_[std::size_t(member)];
  const auto next = [&](auto& handover) -> copying::Handover::Choice {
    const auto choice = handover.next(bytes, taken.held ? 0 : taken.name);
    return {choice.kind, choice.sample && !peer.sample.pending};
  };
  if (!channels_.has_ring_to(member))
    return {taken.held ? peer.returning.best(bytes) : peer.handover.best(bytes), false};
  if (peer.sample.pending) {
    const std::uint64_t reported = channels_.sample_from(member), drained = reported & 0xffffffff;
    peer.sample.pending = reported >> 32 != peer.sample.number;
    if (!peer.sample.pending && drained != not_drained) {
      const std::uint64_t took = peer.sample.ticks + drained;
      if (peer.sample.returns) peer.returning.note(peer.sample.kind, peer.sample.bytes, took);
      else peer.handover.note(peer.sample.kind, peer.sample.bytes, took);
    }
  }
  return taken.held ? next(peer.returning) : next(peer.handover);
}

bool CopyChains::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  const auto taken = pool_.take(member, std::min(data.bytes, longest_buffer()), 8);
  if (!taken.buffer) return false;
  CopyBuffer& buffer = *taken.buffer;
  const auto choice = next_kinds(member, data.bytes, taken);
  const copying::Kinds kinds = copying::handover_kinds[choice.kind];
  buffer.drain = std::uint32_t(kinds.drain);
  buffer.sample = choice.sample;
  const BuffersNote note{taken.name, data.bytes, 0};
  if (buffer.capacity < data.bytes ||
      !channels_.push(member, Kind::buffers, envelope, std::as_bytes(std::span(&note, 1)), {})) {
    pool_.put_back(member, taken);
    return false;
  }
  const std::uint64_t start = choice.sample ? processor::ticks() : 0;
  for (std::uint64_t at = 0; at < data.bytes;) {
    const std::uint64_t bytes = std::min(piece_of(data.bytes, at), data.bytes - at);
    fill_from(data, at, buffer.data + at, bytes, kinds.fill);
    buffer.filled.store(std::uint32_t(at += bytes), std::memory_order_release);  // SYNC: buffer-filled
  }
  if (choice.sample) {
    const std::uint64_t took = processor::ticks_since(start);
    auto& sample = peer_[std::size_t(member)].sample;
    sample = {true, taken.held, choice.kind, std::uint32_t(sample.number + 1), data.bytes, took};
  }
  pool_.lend(taken.name);
  mailboxes_.wake(member);
  return true;
}

bool CopyChains::begin(Request& request) {
  const std::uint64_t bytes = request.data.bytes;
  const bool whole = bytes <= longest_whole(), synchronous = request.mode == Mode::synchronous;
  if ((synchronous || !whole) && !request.attended && waiting_ >= most_that_wait) return false;
  BufferPool::Taken taken;
  if (whole) taken = pool_.take(request.member, bytes, 8, synchronous);
  if (!taken.buffer && (!whole || request.attended))
    taken = pool_.take(request.member, std::min(bytes, longest_buffer()), 8, synchronous || bytes > longest_buffer());
  if (!taken.buffer) return false;
  const bool acknowledged = bytes > taken.buffer->capacity || synchronous;
  const BuffersNote note{taken.name, bytes, acknowledged};
  request.part = InBuffers{.chain = {taken.name, taken.name}, .acknowledged = acknowledged};
  begin_buffer(request, taken);
  if (!channels_.push(request.member, Kind::buffers, request.envelope, std::as_bytes(std::span(&note, 1)), {})) {
    drop_sample(request);
    request.part = {};
    pool_.put_back(request.member, taken);
    return false;
  }
  request.way = State::staged;
  waiting_ += acknowledged;
  in_progress_.sends.push(request.under_way);
  return true;
}

// Before the receiver knows of it.
void CopyChains::begin_buffer(Request& request, const BufferPool::Taken& taken) {
  CopyBuffer& buffer = *taken.buffer;
  const auto choice = next_kinds(request.member, buffer.capacity, taken);
  InBuffers& part = *request.in_buffers();
  part.kind = choice.kind;
  part.sampled = choice.sample;
  buffer.drain = std::uint32_t(copying::handover_kinds[choice.kind].drain);
  buffer.sample = choice.sample;
  auto& sample = peer_[std::size_t(request.member)].sample;
  if (choice.sample) sample = {true, taken.held, choice.kind, sample.number + 1, 0, 0};
}

// Its buffer will not be read.
void CopyChains::drop_sample(Request& request) {
  if (!std::exchange(request.in_buffers()->sampled, false)) return;
  auto& sample = peer_[std::size_t(request.member)].sample;
  sample.pending = false;
  --sample.number;
}

// The next buffer of a chain; false: not now.
bool CopyChains::continue_chain(Request& request, std::uint64_t length) {
  Chain& chain = request.in_buffers()->chain;
  const bool matched = request.offered.transfer || match_of(request) == Match::matched;
  if (!matched && chain.position >= longest_whole()) return false;
  const unsigned spared = !chain.buffer ? 8 : matched ? 0 : 4;
  auto next = pool_.take(request.member, std::min(length - chain.position, longest_buffer()), spared);
  if (!next.buffer && matched) next = pool_.take_spare(request, request.member);
  if (!next.buffer) return false;
  begin_buffer(request, next);
  if (chain.buffer) {
    pool_.sent(request.member, chain.buffer).next.store(next.name, std::memory_order_release);  // SYNC: buffer-next
    lend(request);
  } else {
    chain.first = next.name;
    request.offered.transfer->first.store(next.name, std::memory_order_release);  // SYNC: transfer-first
  }
  chain.buffer = next.name;
  chain.in_buffer = 0;
  mailboxes_.wake(request.member);
  return true;
}

bool CopyChains::fill(Request& request, std::uint64_t length, Guard& guard) {
  InBuffers& part = *request.in_buffers();
  Chain& chain = part.chain;
  bool any_filled = false;
  for (int i = pieces_in_one_poll(request); i > 0 && chain.position < length; --i) {
    if (!chain.buffer || chain.in_buffer == pool_.sent(request.member, chain.buffer).capacity) {
      if (!continue_chain(request, length)) break;
    }
    CopyBuffer& buffer = pool_.sent(request.member, chain.buffer);
    const std::uint64_t bytes = std::min(
        {piece_of(length, chain.position), buffer.capacity - std::uint64_t(chain.in_buffer), length - chain.position});
    request.busy = true;
    guard.let_go();
    const std::uint64_t start = part.sampled ? processor::ticks() : 0;
    fill_from(request.data, chain.position, buffer.data + chain.in_buffer, bytes,
              copying::handover_kinds[part.kind].fill);
    const std::uint64_t took = part.sampled ? processor::ticks_since(start) : 0;
    guard.take();
    request.busy = false;
    if (part.sampled) {
      auto& sample = peer_[std::size_t(request.member)].sample;
      sample.bytes += bytes;
      sample.ticks += took;
    }
    chain.position += bytes;
    chain.in_buffer += std::uint32_t(bytes);
    buffer.filled.store(chain.in_buffer, std::memory_order_release);  // SYNC: buffer-filled
    any_filled = true;
    mailboxes_.wake(request.member);
  }
  if (chain.position == length && !std::exchange(part.filled, true)) lend(request);
  return any_filled;
}

// Nothing more is written to its present buffer; but the match is looked for in the first one.
void CopyChains::lend(const Request& request) {
  const InBuffers& part = *request.in_buffers();
  const bool first = part.chain.position == part.chain.in_buffer;
  if (part.chain.buffer && !(first && part.acknowledged)) pool_.lend(part.chain.buffer);
}

bool CopyChains::send(Request& request, Guard& guard) {
  const std::uint64_t length = request.data.bytes;
  const InBuffers& part = *request.in_buffers();
  const Match match = part.acknowledged ? match_of(request) : Match::none;
  if (match == Match::cancelled) {
    for (std::uint64_t at = part.chain.first; at;) {  // nobody reads them
      CopyBuffer& buffer = pool_.sent(request.member, at);
      at = buffer.next.load(std::memory_order_relaxed);
      buffer.released.store(1, std::memory_order_release);  // SYNC: buffer-released
    }
    drop_sample(request);
    request.cancelled = true;
    request.way = State::done;
    return true;
  }
  const bool filled = fill(request, length, guard);
  // Who has asked for it back waits for the answer.
  const bool answered = match == Match::matched || (request.mode == Mode::standard && !request.withdrawn);
  if (part.chain.position == length && answered) request.way = State::done;
  return filled || request.way == State::done;
}

void CopyChains::end(const Request& request) {
  pool_.end(request);
  const InBuffers* const part = request.in_buffers();
  if (!part || !part->chain.first) return;
  if (!request.offered.transfer) waiting_ -= part->acknowledged;
  if (!part->filled) lend(request);
  if (part->acknowledged) pool_.lend(part->chain.first);
}

std::uint64_t CopyChains::recall(const Request& request) {
  const InBuffers& part = *request.in_buffers();
  return part.acknowledged && !request.withdrawn ? part.chain.first : 0;
}

// pre: it is acknowledged.
Match CopyChains::match_of(const Request& request) const {
  const std::uint64_t first = request.in_buffers()->chain.first;
  return pool_.sent(request.member, first).match.load(std::memory_order_acquire);  // SYNC: match
}

// ---------------------------------------------------------------- the receiver's side

void CopyChains::accept(Request& request, const Arrived& message) {
  const BuffersNote& note = message.note;
  request.protocol = &Rows::copy_buffers;
  request.member = message.member;
  request.envelope = message.envelope;
  request.total = note.bytes;
  request.received = std::min(note.bytes, request.data.bytes);
  if (note.bytes > request.data.bytes) request.error = ErrorKind::truncated;
  request.way = State::staged;
  request.part = InBuffers{.chain = {note.first, note.first}};
  request.under_way.owner = &request;
  if (note.acknowledge) {
    answer(message.member, note.first, Match::matched);
  }
  ++counts_.staged;
  counts_.bytes += request.received;
  in_progress_.receives.push(request.under_way);
}

void CopyChains::answer(int member, std::uint64_t first, Match match) {
  pool_.received(member, first).match.store(match, std::memory_order_release);  // SYNC: match
  mailboxes_.wake(member);
}

// It is read to its end, which has taken `ticks`, if it is a sample.
void CopyChains::read(int member, std::uint64_t name, std::uint32_t ticks) {
  if (pool_.received(member, name).sample) channels_.report_sample(member, ticks);
  pool_.read(member, name);
}

bool CopyChains::drain(Request& request, Guard& guard) {
  Chain& chain = request.in_buffers()->chain;
  const int member = request.member;
  bool any_read = false;
  for (int i = pieces_in_one_poll(request); i > 0; --i) {
    CopyBuffer& buffer = pool_.received(member, chain.buffer);
    const std::uint32_t filled = buffer.filled.load(std::memory_order_acquire);  // SYNC: buffer-filled
    if (filled == chain.in_buffer && filled < buffer.capacity) break;
    if (filled > chain.in_buffer) {
      const std::uint64_t begin = std::min(chain.position, request.received);
      const std::uint64_t end = std::min(chain.position + filled - chain.in_buffer, request.received);
      request.busy = true;
      guard.let_go();
      const std::uint64_t start = buffer.sample ? processor::ticks() : 0;
      if (begin < end)
        drain_into(request.data, begin, buffer.data + chain.in_buffer, end - begin, copying::Store(buffer.drain));
      if (buffer.sample) chain.ticks += std::uint32_t(processor::ticks_since(start));
      guard.take();
      request.busy = false;
      chain.position += filled - chain.in_buffer;
      chain.in_buffer = filled;
      any_read = true;
    }
    if (chain.position == request.total) {
      if (request.error == ErrorKind::truncated && request.offered.transfer)
        request.total = request.offered.transfer->bytes;
      read(member, chain.buffer, chain.ticks);
      request.way = State::done;
      break;
    }
    if (chain.in_buffer < buffer.capacity) continue;
    const std::uint64_t next = buffer.next.load(std::memory_order_acquire);  // SYNC: buffer-next
    if (!next) break;
    read(member, chain.buffer, chain.ticks);
    mailboxes_.wake(member);
    chain = {chain.first, next, chain.position};
  }
  return any_read;
}

void CopyChains::keep(UnexpectedMessage& message) {
  std::uint64_t& kept = peer_[std::size_t(message.member)].kept;
  kept += message.bytes;
  if (kept > longest_whole() && copy_out(message)) kept -= message.bytes;
}

// A message that is all there leaves the buffer that its sender could use again; whether it did.
bool CopyChains::copy_out(UnexpectedMessage& message) {
  const CopyBuffer& buffer = pool_.received(message.member, message.transfer);
  if (message.acknowledge || buffer.filled.load(std::memory_order_acquire) != message.bytes)
    return false;  // SYNC: buffer-filled
  if (!message.make_room()) return false;
  std::memcpy(message.payload(), buffer.data, message.bytes);
  read(message.member, message.transfer, not_drained);
  message.kind = Kind::eager;
  return true;
}

void CopyChains::refuse(int member, std::uint64_t first) { answer(member, first, Match::cancelled); }

}  // namespace nearfield::messages
