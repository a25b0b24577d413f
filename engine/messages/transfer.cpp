// Large messages.
//
//   sender                                            receiver
//   Transfer {bytes, from: where the data lies}
//   record (transfer) ------------------------------> waits for its receive, if there is none
//                                                     chooses a protocol, and answers (answers.cpp):
//   direct.cpp, cma.cpp: blocks claimed from either end
//                     <-- state, to, length ----------
//   claims from the back, copies, back += 1           claims from the front, copies, front += 1
//   front + back == blocks: buffer is free            front + back == blocks: message is there, released = 1
//   staged.cpp: copy buffers (handing.cpp), where the receiver finds them cheaper
//
// The sender reuses the Transfer once `released` is 1. Everything that a side stores in the Transfer is published by
// state (receiver), back (sender) or the record (sender, at first).
//
// Blocks that both sides claim, on memory that both reach: Hybrid MPI (Friedley et al., SC'13).
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/copying/copy.hpp"
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Of one message: the others get their turn, if there are any.
int blocks_in_one_poll(const Request& request) { return request.alone() ? 32 : 4; }

// Few claims where each of them costs as much as the copy of some kilobytes, more where they even out delays.
std::uint64_t block_for(std::uint64_t bytes) {
  const std::uint64_t part = (bytes / (bytes <= 128 << 10 ? 4 : 8) + 4095) / 4096 * 4096;
  return std::clamp<std::uint64_t>(part, 4096, 128 << 10);
}

std::uint32_t parts(std::uint64_t bytes, std::uint64_t each) { return std::uint32_t((bytes + each - 1) / each); }

}  // namespace

// ---------------------------------------------------------------- the sender's side

// False without memory. The lists that a transfer goes through have room for it from then on.
bool Messenger::add_transfers() {
  for (auto* list : {&free_transfers_, &retired_})
    if (list->capacity() < transfers_ + transfers_at_once) list->reserve(2 * transfers_ + transfers_at_once);
  auto slab = process_.arena().allocate(transfers_at_once * sizeof(Transfer), line);
  if (!slab) {
    log_line(LogLevel::info, "no room for another message: %s", slab.error().text.c_str());
    return false;
  }
  transfers_ += transfers_at_once;
  for (unsigned i = 0; i < transfers_at_once; ++i) free_transfers_.push_back(*slab + i * sizeof(Transfer));
  return true;
}

// nullptr without memory.
Transfer* Messenger::new_transfer(std::uint64_t& offset) {
  if (free_transfers_.empty()) reclaim();
  if (free_transfers_.empty() && !add_transfers()) return nullptr;
  offset = free_transfers_.back();
  free_transfers_.pop_back();
  return new (process_.segment().base() + offset) Transfer{};
}

// False without memory.
bool Messenger::begin_transfer(Request& request, const RemoteLayout& where) try {
  if (!(request.offered.transfer = new_transfer(request.offered.offset))) return false;
  request.offered.slot = process_.reach().noticeboard.note(request.data.begin(), request.data.span());
  Transfer& t = *request.offered.transfer;
  t.bytes = request.data.bytes;
  t.own = &request;
  t.attended.store(request.attended, std::memory_order_relaxed);
  t.from = where.size ? where : describe(request.member, request.data);
  return true;
} catch (const std::bad_alloc&) {
  if (request.offered.transfer) free_transfers_.push_back(request.offered.offset);
  request.offered.transfer = nullptr;
  process_.reach().noticeboard.put_back(request.offered.slot);
  return false;
}

// It is matched, and goes on as its receiver has chosen.
void Messenger::begin_send(Request& request) {
  const Transfer& t = *request.offered.transfer;
  if (t.advised) out_[std::size_t(request.member)].offers.advised(t.bytes, t.from.place.reachable());
  const MessageProtocol& protocol = *(request.protocol = &Protocols::of(request.way));
  if (!protocol.copy) {
    request.part.emplace<InBuffers>();
    return;
  }
  InBlocks& part = request.part.emplace<InBlocks>();
  part.blocks = parts(t.length, t.block_bytes);
  try {
    part.helps = protocol.helps(*this, request);
  } catch (const std::bad_alloc&) {  // its receiver does it alone
  }
}

bool Messenger::send_blocks(Request& request, Guard& guard) {
  const InBlocks& part = *request.in_blocks();
  bool copied = false;
  if (part.helps)
    for (int i = blocks_in_one_poll(request); i > 0 && copy_block(request, guard, true); --i) copied = true;
  if (part.done + request.offered.transfer->front.load(std::memory_order_acquire) == part.blocks)
    request.way = State::done;
  return copied || request.way == State::done;
}

// Nothing of the user's buffer is needed any more.
void Messenger::end_send(Request& request) {
  request.under_way.remove();
  end_chain(request);
  if (request.offered.transfer) {
    process_.reach().noticeboard.put_back(request.offered.slot);
    retired_.push_back(request.offered.offset);
    request.part = {};
  }
  complete(request);
}

// Looks at some in vain, in turn.
void Messenger::reclaim() {
  constexpr unsigned looks = 16;
  for (unsigned in_vain = 0; !retired_.empty() && in_vain < looks;) {
    std::uint64_t& retired = retired_[retired_at_ % retired_.size()];
    if (transfer_of(me_, retired).released.load(std::memory_order_acquire) == 0) {  // pairs with end_receive
      ++retired_at_;
      ++in_vain;
      continue;
    }
    free_transfers_.push_back(retired);
    retired = retired_.back();
    retired_.pop_back();
  }
}

// ---------------------------------------------------------------- the receiver's side

void Messenger::accept(Request& request, const Arrived& message) {
  const int member = message.member;
  const std::uint64_t transfer = message.told.first;
  Transfer& t = transfer_of(member, transfer);
  request.member = member;
  request.envelope = message.envelope;
  request.offered.transfer = &t;
  request.received = std::min(t.bytes, request.data.bytes);
  if (t.bytes > request.data.bytes) request.error = ErrorKind::truncated, request.total = t.bytes;
  request.under_way.owner = &request;
  if (request.received == 0) {
    acknowledge(member, transfer, State::done);
    return complete(request);
  }
  t.length = request.received;
  InBlocks& part = request.part.emplace<InBlocks>();
  request.protocol = &choose(request);
  request.way = request.protocol->state;
  ++(counts_.*request.protocol->count);
  t.block_bytes = block_for(t.length);
  if (!request.protocol->copy) {
    request.part.emplace<InBuffers>();  // its sender has the say
  } else {
    if (request.protocol != &Protocols::direct) part.mapping.reset();
    part.blocks = parts(t.length, t.block_bytes);
    t.claims.store(1, std::memory_order_relaxed);  // the first block is ours, without a contest
    part.has_first = true;
    t.to = describe(member, request.data);
    t.to.address = std::uint64_t(request.data.address);
  }
  counts_.bytes += t.length;
  receiving_.push(request.under_way);
  answer(member, transfer, request.way);
}

// The first one that fits, or what trials say.
const MessageProtocol& Messenger::choose(Request& request) try {
  Transfer& t = *request.offered.transfer;
  // A fork that begins now finds the buffer noted, or has taken the heap out of reach before we ask for it.
  request.offered.slot = process_.reach().noticeboard.note(request.data.begin(), request.data.span());
  const MessageProtocol* const first = *std::ranges::find_if(
      Protocols::all, [&](const MessageProtocol* each) { return each->fits && each->fits(*this, request); });
  if (first == &Protocols::staged) {
    t.advised = tries_ways_ && !t.from.place.reachable();  // there is no choice
  } else if (tries_ways_ && request.member != me_ && t.attended.load(std::memory_order_relaxed)) {
    const bool mapped = first == &Protocols::direct;
    return Protocols::of(try_way(request, !mapped || Protocols::cma.fits(*this, request), mapped));
  }
  return *first;
} catch (const std::bad_alloc&) {  // this one needs nothing but the sender's copy buffers
  request.offered.tried = false;
  return Protocols::staged;
}

State Messenger::try_way(Request& request, bool by_calls, bool mapped) {
  static const std::uint64_t slice = processor::ticks_in(5'000'000);  // ns, in which large messages fit as well
  const bool turn = (processor::ticks() / slice & 1) == (me_ < request.member);
  const Ways::Chosen chosen = in_[std::size_t(request.member)].ways.next(
      request.received, by_calls,
      (mapped ? reach::mappers()[request.offered.transfer->from.place.mapper()] : calls_[request.member])
          ->time(double(request.received)),
      turn, mapped);
  request.offered.tried = true;
  request.offered.mapped = mapped;
  request.offered.transfer->advised = chosen.advised;
  if (chosen.timed) request.offered.accepted = waiting::nanoseconds();
  return chosen.way;
}

// Claims a block and copies it; false when none is left.
bool Messenger::copy_block(Request& request, Guard& guard, bool from_back) {
  Transfer& t = *request.offered.transfer;
  InBlocks& part = *request.in_blocks();
  std::uint64_t nth = 0;
  const bool claimed = std::exchange(part.has_first, false);
  std::uint64_t claims = claimed ? 0 : t.claims.load(std::memory_order_relaxed);
  while (!claimed) {
    const std::uint64_t front = claims & 0xffffffff, back = claims >> 32;
    if (front + back >= part.blocks) return false;
    nth = from_back ? part.blocks - 1 - back : front;
    // Only the numbers are shared; the bytes are published by front and back.
    const std::uint64_t mine = claims + (from_back ? std::uint64_t{1} << 32 : 1);
    if (t.claims.compare_exchange_weak(claims, mine, std::memory_order_relaxed)) break;
  }
  const std::uint64_t position = nth * t.block_bytes, bytes = std::min(t.block_bytes, t.length - position);
  request.busy = true;
  guard.let_go();
  const bool good = request.protocol->copy(*this, request, position, bytes, from_back);
  guard.take();
  request.busy = false;
  if (!good) request.error = ErrorKind::broken;
  ++part.done;
  // Both pair with the other side's look at them in its pump: the block is there.
  (from_back ? t.back : t.front).store(part.done, std::memory_order_release);
  wake(request.member);
  return true;
}

bool Messenger::receive_blocks(Request& request, Guard& guard) {
  bool copied = false;
  for (int i = blocks_in_one_poll(request); i > 0 && copy_block(request, guard, false); --i) copied = true;
  const InBlocks& part = *request.in_blocks();
  if (part.done + request.offered.transfer->back.load(std::memory_order_acquire) == part.blocks)
    request.way = State::done;
  return copied || request.way == State::done;
}

void Messenger::end_receive(Request& request) {
  request.under_way.remove();
  if (!request.offered.transfer) {
    wake(request.member);
    return complete(request);
  }
  process_.reach().noticeboard.put_back(request.offered.slot);
  request.offered.transfer->released.store(1, std::memory_order_release);  // pairs with reclaim
  wake(request.member);
  if (const Offered& offered = request.offered; offered.tried)
    in_[std::size_t(request.member)].ways.over(
        request.received, {offered.accepted, offered.accepted ? waiting::nanoseconds() : 0}, offered.mapped);
  request.part = {};
  complete(request);
}

}  // namespace nearfield::messages
