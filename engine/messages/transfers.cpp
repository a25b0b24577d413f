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

// Of one message: the others get their turn, if there are any.
int blocks_in_one_poll(const Request& request) { return request.alone() ? 32 : 4; }

// Few claims where each of them costs as much as the copy of some kilobytes, more where they even out delays.
std::uint64_t block_for(std::uint64_t bytes) {
  const std::uint64_t part = (bytes / (bytes <= 128 << 10 ? 4 : 8) + 4095) / 4096 * 4096;
  return std::clamp<std::uint64_t>(part, 4096, 128 << 10);
}

std::uint32_t parts(std::uint64_t bytes, std::uint64_t each) { return std::uint32_t((bytes + each - 1) / each); }

// Throws std::bad_alloc.
const MessageProtocol& first_that_fits(Protocols& protocols, Request& request) {
  return **std::ranges::find_if(
      Rows::all, [&](const MessageProtocol* each) { return each->fits && each->fits(protocols, request); });
}

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
    log_line(LogLevel::info, "no room for another message: %s", slab.error().text.c_str());
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
bool Transfers::begin(Request& request, const RemoteLayout& where) try {
  if (!(request.offered.transfer = make(request.offered.offset))) return false;
  request.offered.slot = in_flight_buffers_.note(request.data.begin(), request.data.span());
  Transfer& t = *request.offered.transfer;
  t.bytes = request.data.bytes;
  t.own = &request;
  t.attended.store(request.attended, std::memory_order_relaxed);
  t.from = where.size ? where : memory_.describe(request.member, request.data);
  return true;
} catch (const std::bad_alloc&) {
  if (request.offered.transfer) take_back(request);
  request.offered.transfer = nullptr;
  return false;
}

void Transfers::take_back(Request& request) {
  in_flight_buffers_.put_back(request.offered.slot);
  free_.push_back(request.offered.offset);
}

bool Transfers::skips_offer(const Request& request, bool mapped) {
  // Calls of the kernel may be better, where the receiver would try them (accept).
  return !(mapped || tries_ways_) ||
         peer_[std::size_t(request.member)].offers.skip(request.data.bytes, mapped, request.attended);
}

// It is matched, and goes on as its receiver has chosen.
void Transfers::begin_send(Protocols& protocols, Request& request) {
  const Transfer& t = *request.offered.transfer;
  if (t.advised) peer_[std::size_t(request.member)].offers.advised(t.bytes, t.from.place.reachable());
  const MessageProtocol& protocol = *(request.protocol = &Rows::of(request.way));
  if (!protocol.copy) {
    request.part.emplace<InBuffers>();
    return;
  }
  InBlocks& part = request.part.emplace<InBlocks>();
  part.blocks = parts(t.length, t.block_bytes);
  try {
    part.helps = protocol.helps(protocols, request);
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

// Its receiver may still answer: one that is listed is retired when the list has been taken.
void Transfers::give_up(Request& request) {
  Transfer& t = *request.offered.transfer;
  t.own = nullptr;
  if (request.waits) free_.push_back(request.offered.offset);  // nobody has heard of it
  else if (!t.listed) retired_.push_back(request.offered.offset);
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

void Transfers::accept(Protocols& protocols, Request& request, const Arrived& message) {
  const int member = message.member;
  const std::uint64_t transfer = message.note.first;
  Transfer& t = of(member, transfer);
  request.member = member;
  request.envelope = message.envelope;
  request.offered.transfer = &t;
  request.received = std::min(t.bytes, request.data.bytes);
  if (t.bytes > request.data.bytes) request.error = ErrorKind::truncated, request.total = t.bytes;
  request.under_way.owner = &request;
  if (request.received == 0) {
    acknowledge(member, transfer, State::done);
    return continuations_.complete(request);
  }
  t.length = request.received;
  t.block_bytes = block_for(t.length);
  request.part.emplace<InBlocks>();
  try {
    prepare(request, choose(protocols, request));
  } catch (const std::bad_alloc&) {  // this one needs nothing but the sender's copy buffers
    prepare(request, Rows::staged);
  }
  ++(counts_.*request.protocol->count);
  counts_.bytes += t.length;
  in_progress_.receives.push(request.under_way);
  answer(member, transfer, request.way);
}

// What a state publishes.
void Transfers::prepare(Request& request, const MessageProtocol& protocol) {
  request.protocol = &protocol;
  request.way = protocol.state;
  if (!protocol.copy) {
    request.part.emplace<InBuffers>();  // its sender has the say
    return;
  }
  Transfer& t = *request.offered.transfer;
  InBlocks& part = *request.in_blocks();
  if (&protocol != &Rows::direct) part.mapping.reset();
  part.blocks = parts(t.length, t.block_bytes);
  t.claims.store(1, std::memory_order_relaxed);  // the first block is ours, without a contest
  part.has_first = true;
  t.to = memory_.describe(request.member, request.data);
  t.to.address = std::uint64_t(request.data.address);
}

bool Transfers::ask_no_more(Protocols& protocols, Request& request) {
  Offered& offered = request.offered;
  Transfer& t = *offered.transfer;
  const bool may_compute = offered.tried && !t.attended.load(std::memory_order_relaxed);
  if (!offered.accepted || !may_compute || t.state.load(std::memory_order_relaxed) != State::staged) return false;
  if (waiting::nanoseconds() - offered.accepted < std::uint64_t(tuning::constants::slow_answer)) return false;
  offered.accepted = 0;  // asked once, and a time that tells nothing
  bool changed = false;
  try {
    request.part.emplace<InBlocks>();
    const MessageProtocol& instead = first_that_fits(protocols, request);
    if (&instead != &Rows::staged) {
      prepare(request, instead);
      changed = change_state(t, instead.state);
    }
    if (changed) --counts_.staged, ++(counts_.*instead.count);
  } catch (const std::bad_alloc&) {  // it waits for its sender
  }
  if (!changed) {
    prepare(request, Rows::staged);
    return false;
  }
  peer_[std::size_t(request.member)].chooser.asked_in_vain(request.received);
  return true;
}

// The first one that fits, or what trials say.
const MessageProtocol& Transfers::choose(Protocols& protocols, Request& request) try {
  Transfer& t = *request.offered.transfer;
  // A fork that begins now finds the buffer noted, or has taken the heap out of reach before we ask for it.
  request.offered.slot = in_flight_buffers_.note(request.data.begin(), request.data.span());
  const MessageProtocol& first = first_that_fits(protocols, request);
  if (&first == &Rows::staged) {
    t.advised = tries_ways_ && !t.from.place.reachable();  // there is no choice
  } else if (tries_ways_ && request.member != mailboxes_.me()) {
    const bool attended = t.attended.load(std::memory_order_relaxed), mapped = &first == &Rows::direct;
    const ProtocolChooser& chooser = peer_[std::size_t(request.member)].chooser;
    if (attended ||
        (request.received <= protocols.chains.longest_whole() && chooser.tries_unattended(request.received)))
      return Rows::of(try_way(request, !mapped || Rows::cma.fits(protocols, request), attended, mapped));
  }
  return first;
} catch (const std::bad_alloc&) {  // this one needs nothing but the sender's copy buffers
  request.offered.tried = false;
  return Rows::staged;
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
  const bool good = request.protocol->copy(protocols, request, position, bytes, from_back);
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
  const auto name = [](State way) { return Rows::of(way).name; };
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
