// Large messages.
//
//   sender                                            receiver
//   Transfer {bytes, from: where the data lies}
//   record (transfer) ------------------------------> waits for its receive, if there is none
//                                                     chooses the way, and answers (answers.cpp):
//   direct, by calls: blocks claimed from either end
//                     <-- state, to, length ----------
//   claims from the back, copies, back += 1           claims from the front, copies, front += 1
//   front + back == blocks: buffer is free            front + back == blocks: message is there, released = 1
//   staged: copy buffers (handing.cpp), where the receiver finds them cheaper
//
// The sender reuses the Transfer once `released` is 1. Everything that a side stores in the Transfer is published by
// state (receiver), back (sender) or the record (sender, at first).
//
// Blocks that both sides claim, on memory that both reach: Hybrid MPI (Friedley et al., SC'13).
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/copying/copy.hpp"
#include "engine/messages/guard.hpp"

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

// ---------------------------------------------------------------- where data lies

// Where the member finds it, if it has what it needs for that.
reach::Place Messenger::place_for(int member, const std::byte* begin, std::size_t bytes) {
  reach::Peers& reach = node_.reach();
  Peer& peer = *peer_[member];
  const reach::Place place = reach.place(begin, bytes, peer.told);
  if (!place.anything() || attached_[member].passed.holds(place)) return place;
  if (!reach.gives(place)) return {};
  const reach::Way& way = *reach::ways()[place.way()];
  if (way.offer) {
    const std::lock_guard lock(reach.mutex);
    auto passed = way.offer(reach, peer, reach::Region::of(place));
    if (!passed || !*passed) return {};
  }
  attached_[member].passed = reach::Region::of(place);
  return place;
}

Whereabouts Messenger::describe(int member, const layout::Data& data) {
  std::byte* const begin = data.begin();
  Whereabouts where{{},
                    std::uint64_t(begin),
                    data.address - begin,
                    0,
                    data.view.run_count,
                    data.view.size,
                    data.view.extent,
                    data.view.low,
                    data.view.high};
  if (data.bytes == 0 || member == me_) return where;
  const Protocol protocol = node_.settings().protocol;
  if (protocol == Protocol::copy_buffers || protocol == Protocol::cma) return where;
  if (!data.dense()) {
    // Peers must be able to read the runs, too.
    const std::size_t length = data.view.run_count * sizeof(layout::Run);
    if (!node_.segment().contains(data.view.runs, length)) return where;
    where.runs = std::uint64_t(reinterpret_cast<const std::byte*>(data.view.runs) - node_.segment().base());
  }
  where.place = place_for(member, begin, data.span());
  return where;
}

std::byte* Messenger::resolve(int member, const reach::Place& place, std::shared_ptr<const void>& mapping) {
  if (!place.anything()) return nullptr;
  reach::Attachments& attached = attached_[member].theirs;
  const auto* entry = attached.find(place);
  if (!entry) entry = attached.need(node_.reach(), *peer_[member], place);
  if (!entry) return nullptr;
  mapping = entry->keep;
  return entry->resolve(place);
}

// Fills in where the other side's data lies; whether it can be reached.
bool Messenger::adopt(int member, const Whereabouts& where, std::uint64_t bytes, InBlocks& part) {
  std::byte* const lowest =
      member == me_ ? reinterpret_cast<std::byte*>(where.address) : resolve(member, where.place, part.mapping);
  if (!lowest) return false;
  part.other_data = {lowest + where.element, bytes, {}};
  if (member == me_) return true;  // the caller knows the layout
  if (where.runs) {
    part.other_data.view = {reinterpret_cast<const layout::Run*>(base_[member] + where.runs),
                            where.run_count,
                            where.size,
                            where.extent,
                            where.low,
                            where.high};
  }
  return true;
}

std::optional<std::size_t> Messenger::ListsOfRuns::take(memory::Arena& arena) {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && !asked_) {
    asked_ = true;
    free_.reserve(places);
    if (auto offset = arena.allocate(places * bytes, 64))
      for (std::size_t k = 0; k < places; ++k) free_.push_back(*offset + k * bytes);
  }
  if (free_.empty()) return std::nullopt;
  const std::size_t place = free_.back();
  free_.pop_back();
  return place;
}

void Messenger::ListsOfRuns::put_back(std::size_t place) {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
}

layout::View Messenger::share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep) {
  layout::View view = builder.view(extent);
  if (view.dense()) return view;
  const std::size_t bytes = builder.run_count() * sizeof(layout::Run);
  layout::Run* runs;
  const auto place = bytes <= ListsOfRuns::bytes ? lists_of_runs_.take(node_.arena()) : std::nullopt;
  if (place) {
    runs = reinterpret_cast<layout::Run*>(node_.segment().base() + *place);
    keep = std::shared_ptr<const void>(runs, [this, at = *place](const void*) { lists_of_runs_.put_back(at); });
  } else if (auto offset = node_.arena().allocate(bytes, 64)) {
    runs = reinterpret_cast<layout::Run*>(node_.segment().base() + *offset);
    keep = std::shared_ptr<const void>(runs, [this, at = *offset](const void*) { node_.arena().free(at); });
  } else {
    runs = static_cast<layout::Run*>(::operator new(bytes));
    keep = std::shared_ptr<const void>(runs, [](const void* p) { ::operator delete(const_cast<void*>(p)); });
  }
  std::memcpy(runs, view.runs, bytes);
  view.runs = runs;
  return view;
}

// ---------------------------------------------------------------- the sender's side

// False without memory. The lists that a transfer goes through have room for it from then on.
bool Messenger::add_transfers() {
  for (auto* list : {&free_transfers_, &retired_})
    if (list->capacity() < transfers_ + transfers_at_once) list->reserve(2 * transfers_ + transfers_at_once);
  auto slab = node_.arena().allocate(transfers_at_once * sizeof(Transfer), line);
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
  return new (node_.segment().base() + offset) Transfer{};
}

// False without memory.
bool Messenger::begin_transfer(Request& request, const Whereabouts& where) try {
  if (!(request.offered.transfer = new_transfer(request.offered.offset))) return false;
  request.offered.slot = node_.reach().noticeboard.note(request.data.begin(), request.data.span());
  Transfer& t = *request.offered.transfer;
  t.bytes = request.data.bytes;
  t.own = &request;
  t.attended.store(request.attended, std::memory_order_relaxed);
  t.from = where.size ? where : describe(request.member, request.data);
  return true;
} catch (const std::bad_alloc&) {
  if (request.offered.transfer) free_transfers_.push_back(request.offered.offset);
  request.offered.transfer = nullptr;
  node_.reach().noticeboard.put_back(request.offered.slot);
  return false;
}

// It is matched, and goes on as its receiver has chosen.
void Messenger::begin_send(Request& request) {
  const Transfer& t = *request.offered.transfer;
  if (t.advised) out_[std::size_t(request.member)].offers.advised(t.bytes, t.from.place.reachable());
  if (request.way == State::staged) {
    request.part.emplace<InBuffers>();
    return;
  }
  InBlocks& part = request.part.emplace<InBlocks>();
  part.blocks = parts(t.length, t.block_bytes);
  part.helps = request.way == State::by_calls && request.member != me_ && calls_[request.member];
  if (request.way != State::direct || request.member == me_) return;
  try {
    part.helps = adopt(request.member, t.to, t.length, part);
  } catch (const std::bad_alloc&) {  // its receiver does it alone
  }
}

bool Messenger::pump_send(Request& request, Guard& guard) {
  if (!request.offered.transfer) return pump_chain(request, guard);
  Transfer& t = *request.offered.transfer;
  switch (request.way) {
    case State::direct:
    case State::by_calls: {
      const InBlocks& part = *request.in_blocks();
      bool copied = false;
      if (part.helps)
        for (int i = blocks_in_one_poll(request); i > 0 && copy_block(request, guard, true); --i) copied = true;
      if (part.done + t.front.load(std::memory_order_acquire) == part.blocks) request.way = State::done;
      return copied || request.way == State::done;
    }
    case State::staged: {
      const bool filled = fill_buffers(request, t.length, guard);
      if (request.in_buffers()->chain.position == t.length) request.way = State::done;
      return filled;
    }
    default: return false;
  }
}

// Nothing of the user's buffer is needed any more.
void Messenger::end_send(Request& request) {
  request.under_way.remove();
  end_chain(request);
  if (request.offered.transfer) {
    node_.reach().noticeboard.put_back(request.offered.slot);
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

void Messenger::accept(Request& request, int member, std::uint64_t transfer, const Envelope& envelope) {
  Transfer& t = transfer_of(member, transfer);
  request.member = member;
  request.envelope = envelope;
  request.offered.transfer = &t;
  request.received = std::min(t.bytes, request.data.bytes);
  if (t.bytes > request.data.bytes) request.trouble = Trouble::truncated, request.total = t.bytes;
  request.under_way.owner = &request;
  if (request.received == 0) {
    acknowledge(member, transfer, State::done);
    return complete(request);
  }
  t.length = request.received;
  const Protocol protocol = node_.settings().protocol;
  const bool by_calls = calls_[member] && request.data.dense() && t.from.address && t.from.run_count == 0;
  InBlocks& part = request.part.emplace<InBlocks>();
  try {
    // A fork that begins now finds the buffer noted, or has taken the heap out of reach before we ask for it.
    request.offered.slot = node_.reach().noticeboard.note(request.data.begin(), request.data.span());
    if (adopt(member, t.from, t.length, part)) {
      request.way = State::direct;
      if (member == me_) part.other_data.view = t.own ? t.own->data.view : layout::View{};
      else if (tries_ways_ && t.attended.load(std::memory_order_relaxed)) try_way(request, by_calls);
    } else if (tries_ways_ && by_calls && protocol == Protocol::automatic &&
               t.attended.load(std::memory_order_relaxed)) {
      try_way(request, true, false);
    } else {
      // Calls need no turn of its sender.
      const bool calls = by_calls && (protocol == Protocol::automatic || protocol == Protocol::cma);
      request.way = calls ? State::by_calls : State::staged;
      t.advised = tries_ways_ && !calls && !t.from.place.reachable();  // there is no choice
    }
  } catch (const std::bad_alloc&) {  // this way needs nothing but the sender's copy buffers
    request.offered.tried = false;
    request.way = State::staged;
  }
  ++(request.way == State::direct     ? counts_.direct
     : request.way == State::by_calls ? counts_.by_calls
                                      : counts_.staged);
  t.block_bytes = block_for(t.length);
  if (request.way == State::staged) {
    request.part.emplace<InBuffers>();  // its sender has the say
  } else {
    if (request.way == State::by_calls) part.mapping.reset();
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

// Where there is a choice, what trials say.
void Messenger::try_way(Request& request, bool by_calls, bool mapped) {
  static const std::uint64_t slice = processor::ticks_in(5'000'000);  // ns, in which large messages fit as well
  const bool turn = (processor::ticks() / slice & 1) == (me_ < request.member);
  const Ways::Chosen chosen = in_[std::size_t(request.member)].ways.next(
      request.received, by_calls,
      (mapped ? reach::ways()[request.offered.transfer->from.place.way()] : calls_[request.member])
          ->time(double(request.received)),
      turn, mapped);
  request.way = chosen.way;
  request.offered.tried = true;
  request.offered.mapped = mapped;
  request.offered.transfer->advised = chosen.advised;
  if (chosen.timed) request.offered.accepted = waiting::nanoseconds();
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
  bool good = true;
  if (request.way == State::by_calls) {
    const reach::Way& way = *calls_[request.member];
    const Peer& peer = *peer_[request.member];
    std::byte* const own = request.data.address + position;
    good = from_back ? bool(way.write(peer, own, t.to.address + position, bytes))
                     : bool(way.read(peer, own, t.from.address + position, bytes));
  } else if (from_back) {
    layout::copy(part.other_data, request.data, position, bytes);
  } else {
    layout::copy(request.data, part.other_data, position, bytes);
  }
  guard.take();
  request.busy = false;
  if (!good) request.trouble = Trouble::broken;
  ++part.done;
  // Both pair with the other side's look at them in its pump: the block is there.
  (from_back ? t.back : t.front).store(part.done, std::memory_order_release);
  wake(request.member);
  return true;
}

bool Messenger::pump_receive(Request& request, Guard& guard) {
  bool copied = false;
  if (request.way == State::staged) {
    if (Chain& chain = request.in_buffers()->chain; !chain.buffer) {
      const Transfer& t = *request.offered.transfer;
      const std::uint64_t first = t.first.load(std::memory_order_acquire);  // pairs with continue_chain
      if (!first) return false;
      chain = {first, first};
      request.total = t.length;
    }
    copied = drain_buffers(request, guard);
  } else {
    for (int i = blocks_in_one_poll(request); i > 0 && copy_block(request, guard, false); --i) copied = true;
    const InBlocks& part = *request.in_blocks();
    if (part.done + request.offered.transfer->back.load(std::memory_order_acquire) == part.blocks)
      request.way = State::done;
  }
  return copied || request.way == State::done;
}

void Messenger::end_receive(Request& request) {
  request.under_way.remove();
  if (!request.offered.transfer) {
    wake(request.member);
    return complete(request);
  }
  node_.reach().noticeboard.put_back(request.offered.slot);
  request.offered.transfer->released.store(1, std::memory_order_release);  // pairs with reclaim
  wake(request.member);
  if (const Offered& offered = request.offered; offered.tried)
    in_[std::size_t(request.member)].ways.over(
        request.received, {offered.accepted, offered.accepted ? waiting::nanoseconds() : 0}, offered.mapped);
  request.part = {};
  complete(request);
}

}  // namespace nearfield::messages
