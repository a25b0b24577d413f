#include "engine/messages/copy_chains.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Pieces of one message that a poll copies; fewer if others wait for their turn. A message that lies in buffers as a
// whole is read in one poll.
int pieces_in_one_poll(const Request& request) {
  // A sender that was asked while it may compute goes on in its next call, whenever that is.
  const bool may_compute = request.is_send && request.offered.transfer && !request.attended;
  return request.alone() || may_compute ? 64 : 16;
}

// Returns the bytes that one side copies before it tells the other. The first piece is a delay, and every piece costs
// the transfer of a line. Together they cost least with pieces of sqrt(bytes * line / time of a byte). That quotient is
// about 4 KiB on all machines seen, near and far; a power of two is good enough.
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

// Returns by which kinds of stores and loads the next bytes go to this member through that buffer.
copying::Handover::Choice CopyChains::next_kinds(int member, std::uint64_t bytes, std::uint64_t name) {
  PerMember& peer = peer_[std::size_t(member)];
  if (pool_.sent(member, name).returning) return {copying::returning_kind};
  if (!channels_.has_ring_to(member)) return {peer.handover.best(bytes)};
  if (peer.sample.pending) {
    const std::uint64_t reported = channels_.sample_from(member), drained = reported & 0xffffffff;
    peer.sample.pending = reported >> 32 != peer.sample.number;
    if (!peer.sample.pending && drained != not_drained)
      peer.handover.note(peer.sample.kind, peer.sample.bytes, peer.sample.ticks + drained);
  }
  const auto choice = peer.handover.next(bytes, name);
  return {choice.kind, choice.sample && !peer.sample.pending};
}

bool CopyChains::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  const std::uint64_t name = pool_.take(member, std::min(data.bytes, longest_buffer()), 8);
  if (!name) return false;
  CopyBuffer& buffer = pool_.sent(member, name);
  const auto choice = next_kinds(member, data.bytes, name);
  const copying::Kinds kinds = copying::handover_kinds[choice.kind];
  buffer.drain = std::uint32_t(kinds.drain);
  buffer.sample = choice.sample;
  const Note note{0, data.bytes, name};
  if (buffer.capacity < data.bytes ||
      !channels_.push(member, Kind::rendezvous, envelope, std::as_bytes(std::span(&note, 1)), {})) {
    pool_.put_back(member, name);
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
    sample = {true, choice.kind, std::uint32_t(sample.number + 1), data.bytes, took};
  }
  mailboxes_.wake(member);
  return true;
}

bool CopyChains::begin(Request& request) {
  const std::uint64_t bytes = request.data.bytes;
  const bool whole = bytes <= longest_whole();
  std::uint64_t name = whole ? pool_.take(request.member, bytes, 8) : 0;
  // A message of eager length has to leave without its receiver.
  const bool may_wait = request.mode == Mode::synchronous || bytes > channels_.longest_eager(request.member);
  if (!name && (!whole || (request.attended && may_wait)))
    name = pool_.take(request.member, std::min(bytes, longest_buffer()), 8);
  if (!name) return false;
  request.part = InBuffers{.chain = {name, name, bytes}};
  begin_buffer(request, name);
  return true;
}

void CopyChains::take_back(Request& request) {
  drop_sample(request);
  pool_.put_back(request.member, request.in_buffers()->chain.first);
  request.part = {};
}

// pre: the receiver does not know of the buffer yet.
void CopyChains::begin_buffer(Request& request, std::uint64_t name) {
  CopyBuffer& buffer = pool_.sent(request.member, name);
  const auto choice = next_kinds(request.member, buffer.capacity, name);
  InBuffers& part = *request.in_buffers();
  part.kind = choice.kind;
  part.sampled = choice.sample;
  buffer.drain = std::uint32_t(copying::handover_kinds[choice.kind].drain);
  buffer.sample = choice.sample;
  auto& sample = peer_[std::size_t(request.member)].sample;
  if (choice.sample) sample = {true, choice.kind, sample.number + 1, 0, 0};
}

// The receiver will not read the buffer of the sample, so it will not report.
void CopyChains::drop_sample(Request& request) {
  if (!std::exchange(request.in_buffers()->sampled, false)) return;
  auto& sample = peer_[std::size_t(request.member)].sample;
  sample.pending = false;
  --sample.number;
}

// Takes the next buffer of a chain and names it to the receiver; false: there is none now.
bool CopyChains::continue_chain(Request& request) {
  Chain& chain = request.in_buffers()->chain;
  const bool matched = request.way == State::staged;
  if (!matched && chain.position >= longest_whole()) return false;
  const unsigned spared = !chain.buffer ? 8 : matched ? 0 : 4;
  std::uint64_t next = pool_.take(request.member, std::min(chain.length - chain.position, longest_buffer()), spared);
  if (!next && matched) next = pool_.take_spare(request, request.member);
  if (!next) return false;
  begin_buffer(request, next);
  if (chain.buffer) {
    pool_.sent(request.member, chain.buffer).next.store(next, std::memory_order_release);  // SYNC: buffer-next
  } else {
    chain.first = next;
    request.offered.transfer->first.store(next, std::memory_order_release);  // SYNC: transfer-first
  }
  chain.buffer = next;
  chain.in_buffer = 0;
  mailboxes_.wake(request.member);
  return true;
}

bool CopyChains::fill(Request& request, Guard& guard) {
  InBuffers& part = *request.in_buffers();
  Chain& chain = part.chain;
  bool any_filled = false;
  for (int i = pieces_in_one_poll(request); i > 0 && !chain.at_end(); --i) {
    if (!chain.buffer || chain.in_buffer == pool_.sent(request.member, chain.buffer).capacity) {
      if (!continue_chain(request)) break;
    }
    CopyBuffer& buffer = pool_.sent(request.member, chain.buffer);
    const std::uint64_t bytes =
        std::min({piece_of(chain.length, chain.position), buffer.capacity - std::uint64_t(chain.in_buffer),
                  chain.length - chain.position});
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
  return any_filled;
}

void CopyChains::recall(Request& request) {
  bool& sampled = request.in_buffers()->sampled;
  for (std::uint64_t at = request.in_buffers()->chain.first; at;) {
    CopyBuffer& buffer = pool_.sent(request.member, at);
    at = buffer.next.load(std::memory_order_relaxed);
    sampled |= buffer.sample != 0;
    buffer.released.store(1, std::memory_order_release);  // SYNC: buffer-released
  }
  drop_sample(request);
}

// ---------------------------------------------------------------- the receiver's side

void CopyChains::accept(Request& request, std::uint64_t first, std::uint64_t length) {
  request.way = State::staged;
  request.part = InBuffers{.chain = {first, first, length}};
  ++counts_.staged;
  counts_.bytes += request.received;
  in_progress_.receives.push(request.under_way);
}

// Whether the sender has filled anything of a message that it was asked for.
bool CopyChains::finds_first(Request& request) {
  Chain& chain = request.in_buffers()->chain;
  Offered& offered = request.offered;
  chain.first = chain.buffer = offered.transfer->first.load(std::memory_order_acquire);  // SYNC: transfer-first
  // Once copy buffers have won the sender is no longer asked, so the time of its answer does not count.
  if (chain.first && offered.accepted) offered.asked = waiting::nanoseconds() - offered.accepted;
  return chain.first;
}

// The buffer is read to its end. `ticks`: of reading it, if it is a sample.
void CopyChains::read(int member, std::uint64_t name, std::uint32_t ticks) {
  if (pool_.received(member, name).sample) channels_.report_sample(member, ticks);
  pool_.read(member, name);
}

bool CopyChains::drain(Request& request, Guard& guard) {
  Chain& chain = request.in_buffers()->chain;
  const int member = request.member;
  bool any_read = false;
  if (!chain.buffer && !finds_first(request)) return false;
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
    if (chain.at_end()) {
      read(member, chain.buffer, chain.ticks);
      request.way = State::done;
      break;
    }
    if (chain.in_buffer < buffer.capacity) continue;
    const std::uint64_t next = buffer.next.load(std::memory_order_acquire);  // SYNC: buffer-next
    if (!next) break;
    read(member, chain.buffer, chain.ticks);
    mailboxes_.wake(member);
    chain = {chain.first, next, chain.length, chain.position};
  }
  return any_read;
}

void CopyChains::keep(UnexpectedMessage& message) {
  std::uint64_t& kept = peer_[std::size_t(message.member)].kept;
  kept += message.note.bytes;
  if (kept > longest_whole() && copy_out(message)) kept -= message.note.bytes;
}

// Copies a message aside, if all of it is there, so that its sender has the buffer again. Returns whether it did.
bool CopyChains::copy_out(UnexpectedMessage& message) {
  const CopyBuffer& buffer = pool_.received(message.member, message.note.first);
  if (buffer.filled.load(std::memory_order_acquire) != message.note.bytes) return false;  // SYNC: buffer-filled
  if (!message.make_room()) return false;
  std::memcpy(message.payload(), buffer.data, message.note.bytes);
  read(message.member, message.note.first, not_drained);
  message.make_carried();
  return true;
}

}  // namespace nearfield::messages
