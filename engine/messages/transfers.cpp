#include "engine/messages/transfers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/log.hpp"
#include "engine/copying/copy.hpp"
#include "engine/machine/left_behind.hpp"
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Blocks of one message that a poll copies; fewer if others wait for their turn.
int blocks_in_one_poll(const Request& request) { return request.alone() ? 32 : 4; }

// A short message has few blocks, since each claim costs as much as the copy of some kilobytes; a longer one has more,
// which even out delays.
std::uint64_t block_for(std::uint64_t bytes) {
  const std::uint64_t part = (bytes / (bytes <= 128 << 10 ? 4 : 8) + 4095) / 4096 * 4096;
  return std::clamp<std::uint64_t>(part, 4096, 128 << 10);
}

std::uint32_t parts(std::uint64_t bytes, std::uint64_t each) { return std::uint32_t((bytes + each - 1) / each); }

}  // namespace

Transfers::Transfers(Mailboxes& mailboxes, Channels& channels, RemoteMemory& memory, InProgress& in_progress,
                     Continuations& continuations, Counts& counts)
    : mailboxes_(mailboxes),
      channels_(channels),
      memory_(memory),
      in_progress_(in_progress),
      continuations_(continuations),
      counts_(counts),
      in_flight_buffers_(mailboxes.process().reach().in_flight_buffers),
      tries_ways_(mailboxes.process().settings().choosing == Choosing::trial &&
                  mailboxes.process().settings().protocol == Protocol::automatic &&
                  !mailboxes.process().policy().oversubscribed),
      peer_(std::size_t(mailboxes.count())) {}

// ---------------------------------------------------------------- the sender's side

// The lists that a transfer goes through have room for it from then on.
bool Transfers::add() {
  for (auto* list : {&free_, &retired_})
    if (list->capacity() < all_ + transfers_at_once) list->reserve(2 * all_ + transfers_at_once);
  auto slab = mailboxes_.process().arena().allocate(transfers_at_once * sizeof(Transfer), line);
  if (!slab) {
    log_line(LogLevel::info, "no memory for another outstanding message: %s", slab.error().text.c_str());
    return false;
  }
  all_ += transfers_at_once;
  for (unsigned i = 0; i < transfers_at_once; ++i) free_.push_back(*slab + i * sizeof(Transfer));
  return true;
}

// nullptr without memory.
Transfer* Transfers::make(std::uint64_t& offset) {
  if (free_.empty()) reclaim();
  if (free_.empty() && !add()) return nullptr;
  offset = free_.back();
  free_.pop_back();
  return new (&of(mailboxes_.me(), offset)) Transfer{};
}

// False without memory.
bool Transfers::begin(Request& request, const RemoteLayout& where, std::uint64_t first) try {
  if (!(request.offered.transfer = make(request.offered.offset))) return false;
  request.offered.slot = in_flight_buffers_.note(request.data.begin(), request.data.span());
  Transfer& t = *request.offered.transfer;
  t.bytes = request.data.bytes;
  t.own = &request;
  t.attended.store(request.attended, std::memory_order_relaxed);
  if (where.size) t.from = where;
  else if (!first) t.from = memory_.describe(request.member, request.data);
  return true;
} catch (const std::bad_alloc&) {
  if (request.offered.transfer) take_back(request);
  return false;
}

// pre: the receiver does not know of it.
void Transfers::take_back(Request& request) {
  in_flight_buffers_.put_back(request.offered.slot);
  free_.push_back(request.offered.offset);
  request.offered = {};
}

// Called when the send is matched: prepares it for what its receiver has chosen.
void Transfers::begin_send(Protocols& protocols, Request& request) {
  const Transfer& t = *request.offered.transfer;
  if (t.advised) peer_[std::size_t(request.member)].offers.advised(t.bytes);
  if (request.way == State::staged) {
    if (!request.in_buffers()) request.part.emplace<InBuffers>();
    request.in_buffers()->chain.length = t.length;
    return;
  }
  InBlocks& part = request.part.emplace<InBlocks>();
  part.blocks = parts(t.length, t.block_bytes);
  try {
    part.helps = single_copy(request.way).helps(protocols, request);
  } catch (const std::bad_alloc&) {  // its receiver does it alone
  }
}

bool Transfers::send_blocks(Protocols& protocols, Request& request, Guard& guard) {
  const InBlocks& part = *request.in_blocks();
  bool copied = false;
  if (part.helps)
    for (int i = blocks_in_one_poll(request); i > 0 && copy_block(protocols, request, guard, true); --i) copied = true;
  // SYNC: blocks-front
  if (part.done + request.offered.transfer->front.load(std::memory_order_acquire) == part.blocks)
    request.way = State::done;
  return copied || request.way == State::done;
}

void Transfers::retire(Request& request) {
  in_flight_buffers_.put_back(request.offered.slot);
  retired_.push_back(request.offered.offset);
  request.part = {};
}

// The receiver may still answer. A listed Transfer without an answer is retired by take_answers().
void Transfers::give_up(Request& request) {
  Transfer& t = *request.offered.transfer;
  t.own = nullptr;
  if (!t.listed || request.way != State::waiting) retired_.push_back(request.offered.offset);
}

void Transfers::reclaim() {
  constexpr unsigned looks = 16;
  for (unsigned in_vain = 0; !retired_.empty() && in_vain < looks;) {
    std::uint64_t& retired = retired_[retired_at_ % retired_.size()];
    if (of(mailboxes_.me(), retired).released.load(std::memory_order_acquire) == 0) {  // SYNC: transfer-released
      ++retired_at_;
      ++in_vain;
      continue;
    }
    free_.push_back(retired);
    retired = retired_.back();
    retired_.pop_back();
  }
}

// ---------------------------------------------------------------- the receiver's side

void Transfers::accept(Protocols& protocols, Request& request, const Note& note) {
  const int member = request.member;
  Transfer& t = of(member, note.transfer);
  request.offered.transfer = &t;
  if (note.first) {
    t.length = note.bytes;  // its sender may have filled all
    protocols.chains.accept(request, note.first, note.bytes);
    return answer(member, note.transfer, State::staged);
  }
  if (request.received == 0) {
    acknowledge(member, note.transfer, State::done);
    request.offered.transfer = nullptr;
    return continuations_.complete(request);
  }
  t.length = request.received;
  t.block_bytes = block_for(t.length);
  request.part.emplace<InBlocks>();
  const State state = choose(protocols, request);
  if (state == State::staged) {
    protocols.chains.accept(request, 0, t.length);
  } else {
    ++(counts_.*single_copy(state).count);
    counts_.bytes += t.length;
    in_progress_.receives.push(request.under_way);
  }
  answer(member, note.transfer, state);
}

// Fills in what the state of a single copy publishes.
void Transfers::prepare(Request& request, State state) {
  request.way = state;
  Transfer& t = *request.offered.transfer;
  InBlocks& part = *request.in_blocks();
  if (state != State::direct) part.mapping.reset();
  part.blocks = parts(t.length, t.block_bytes);
  t.claims.store(1, std::memory_order_relaxed);  // the first block is ours, without a contest
  part.has_first = true;
  t.to = memory_.describe(request.member, request.data);
  t.to.address = std::uint64_t(request.data.address);
}

// Chooses the first single copy that fits, unless trials say otherwise. A sender that may compute is not asked for copy
// buffers, since the message would wait for the next call of the sender.
State Transfers::choose(Protocols& protocols, Request& request) try {
  Transfer& t = *request.offered.transfer;
  // A fork that begins now finds the buffer noted, or has taken the heap out of reach before we ask for it.
  request.offered.slot = in_flight_buffers_.note(request.data.begin(), request.data.span());
  const SingleCopy* const first = single_copy_for(protocols, request);
  State state = first ? first->state : State::staged;
  if (!first) {
    t.advised = tries_ways_ && !t.from.place.reachable();  // there is no choice
  } else if (tries_ways_ && request.member != mailboxes_.me()) {
    const bool mapped = state == State::direct;
    const bool by_calls = !mapped || single_copy(State::by_calls).fits(protocols, request);
    state = try_way(request, by_calls, t.attended.load(std::memory_order_relaxed), mapped);
  }
  if (state != State::staged) prepare(request, state);
  return state;
} catch (const std::bad_alloc&) {  // this one needs nothing but the sender's copy buffers
  return State::staged;
}

// What figures say of one copy and of two, if programs write to their buffers again.
ProtocolChooser::Estimate Transfers::estimate(const reach::MemoryMapper& mapper, double bytes) const {
  const PairCosts& pair = mailboxes_.pair_costs();
  const Machine& machine = mailboxes_.process().machine();
  const PairStates states = machine::pair_states(machine);
  const double left = machine::left_behind(pair, states, machine, 2 * bytes);
  return {mapper.time(bytes), left * bytes, pair.line > 0 && pair.copy + left > pair.fill + pair.empty};
}

State Transfers::try_way(Request& request, bool by_calls, bool attended, bool mapped) {
  static const std::uint64_t slice = processor::ticks_in(5'000'000);  // ns, in which large messages fit as well
  const bool turn = (processor::ticks() / slice & 1) == (mailboxes_.me() < request.member);
  const auto* const mapper =
      mapped ? reach::mappers()[request.offered.transfer->from.place.mapper()] : memory_.calls(request.member);
  const ProtocolChooser::Chosen chosen = peer_[std::size_t(request.member)].chooser.next(
      request.received, by_calls, estimate(*mapper, double(request.received)), attended, turn, mapped);
  request.offered.tried = true;
  request.offered.mapped = mapped;
  request.offered.transfer->advised = chosen.advised;
  if (chosen.timed) request.offered.accepted = waiting::nanoseconds();
  return chosen.way;
}

// Claims a block and copies it; false when none is left.
bool Transfers::copy_block(Protocols& protocols, Request& request, Guard& guard, bool from_back) {
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
  const bool good = single_copy(request.way).copy(protocols, request, position, bytes, from_back);
  guard.take();
  request.busy = false;
  if (!good) request.error = ErrorKind::broken;
  ++part.done;
  (from_back ? t.back : t.front).store(part.done, std::memory_order_release);  // SYNC: blocks-front, blocks-back
  mailboxes_.wake(request.member);
  return true;
}

bool Transfers::receive_blocks(Protocols& protocols, Request& request, Guard& guard) {
  bool copied = false;
  for (int i = blocks_in_one_poll(request); i > 0 && copy_block(protocols, request, guard, false); --i) copied = true;
  const InBlocks& part = *request.in_blocks();
  // SYNC: blocks-back
  if (part.done + request.offered.transfer->back.load(std::memory_order_acquire) == part.blocks)
    request.way = State::done;
  return copied || request.way == State::done;
}

void Transfers::report(const Request& request, const ProtocolChooser& chooser) const try {
  const auto name = [](State way) { return way == State::staged ? "staged" : single_copy(way).name; };
  log_line(LogLevel::info, "messages of %llu bytes from member %d: %s",
           static_cast<unsigned long long>(request.received), int(request.member),
           chooser.describe(request.received, request.offered.mapped, name).c_str());
} catch (const std::bad_alloc&) {  // it is decided all the same
}

// A receive that is given up tells nothing of its way.
void Transfers::forget(const Request& request) {
  const Offered& offered = request.offered;
  if (offered.tried) peer_[std::size_t(request.member)].chooser.over(request.received, {0, 0}, 0, offered.mapped);
}

void Transfers::release(Request& request) {
  in_flight_buffers_.put_back(request.offered.slot);
  request.offered.transfer->released.store(1, std::memory_order_release);  // SYNC: transfer-released
  if (const Offered& offered = request.offered; offered.tried) {
    ProtocolChooser& chooser = peer_[std::size_t(request.member)].chooser;
    const tuning::Moment moment{offered.accepted, offered.accepted ? waiting::nanoseconds() : 0};
    if (chooser.over(request.received, moment, offered.asked, offered.mapped)) report(request, chooser);
  }
  request.part = {};
}

}  // namespace nearfield::messages
