// Sends: records into a fastbox or a cell, what waits for room, and the start of transfers.
#include <algorithm>
#include <cstring>

#include "engine/messages/protocols.hpp"
#include "engine/messages/queue.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint32_t talkative = 4;  // messages of a pair before it gets a fastbox

}  // namespace

bool Messenger::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  Guard guard(*this);
  Out& out = out_[member];
  if (!out.waiting.empty()) return false;
  // Under the lock, so other threads should not have to wait for long.
  constexpr std::uint64_t among_threads = 16 << 10;
  if (data.bytes > in_record_ && member != me_ &&
      data.bytes <= std::min(copied_always_,
                             program_threads_.load(std::memory_order_relaxed) ? among_threads : longest_buffer()) &&
      hand_over(member, envelope, data))
    return true;
  if (data.bytes > eager_limit(out)) return false;
  return push(member, Kind::eager, envelope, {}, data);
}

Cell* Messenger::free_cell() {
  for (unsigned i = 0; i < cells; ++i) {
    Cell& cell = mine_->cell[next_cell_ = (next_cell_ + 1) % cells];
    if (cell.busy.load(std::memory_order_acquire) == 0) return &cell;  // pairs with poll_queue
  }
  return nullptr;
}

// The cell's payload is written.
void Messenger::send_cell(int member, Cell& cell, Kind kind, std::size_t payload) {
  cell.record.word.store(record_word(kind, payload), std::memory_order_relaxed);  // published by the queue
  cell.busy.store(1, std::memory_order_relaxed);
  const auto at = std::uint64_t(reinterpret_cast<std::byte*>(&cell) - process_.segment().base());
  enqueue(*box_[member], std::uint64_t(me_ + 1) << 48 | at, [this](Reference r) -> Cell& { return cell_at(r); });
}

bool Messenger::make_fastbox(int member) {
  Cell* const cell = free_cell();
  if (!cell) return false;
  auto offset = process_.arena().allocate(bytes_of_fastbox(ring_bytes_), line, memory::Component::fastboxes);
  if (!offset) {
    log_line(LogLevel::info, "no room for a fastbox, a pair goes on with the queue: %s", offset.error().text.c_str());
    out_[member].without_box = true;
    return false;
  }
  ++counts_.fastboxes;
  out_[member].box = FastboxWriter(reinterpret_cast<Ring*>(process_.segment().base() + *offset), ring_bytes_);
  const std::uint64_t where[2] = {*offset, ring_bytes_};
  std::memcpy(cell->record.payload, where, sizeof where);
  send_cell(member, *cell, Kind::fastbox, sizeof where);
  return true;
}

// A record with a note of ours, and with the data; false while there is no room.
bool Messenger::push(int member, Kind kind, const Envelope& envelope, std::span<const std::byte> note,
                     const layout::Data& data) {
  Out& out = out_[member];
  const std::size_t payload = note.size() + data.bytes;
  const Protocol protocol = process_.settings().protocol;
  const bool boxed = protocol != Protocol::queue && !out.without_box;
  if (!out.box && boxed && (protocol == Protocol::fastbox || ++out.talked > talkative || payload > cell_payload) &&
      !make_fastbox(member))
    return false;  // it is tried again, by the queue where there is no memory
  Record* record;
  Cell* cell = nullptr;
  if (out.box) {
    record = out.box.reserve(payload);
    if (!record) return false;
  } else {
    cell = free_cell();
    if (!cell) return false;
    record = &cell->record;
  }
  record->envelope = envelope;
  if (!note.empty()) std::memcpy(record->payload, note.data(), note.size());
  if (data.bytes) layout::gather(record->payload + note.size(), data, 0, data.bytes);
  if (cell) {
    send_cell(member, *cell, kind, payload);
    ++counts_.cells;
  } else {
    out.box.publish(record, kind, payload);
    ++counts_.fastbox;
  }
  wake(member);
  return true;
}

void Messenger::wake(int member) {
  MessageMailbox& box = *box_[member];
  if (box.asleep.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  box.wake_word.fetch_add(1, std::memory_order_release);  // pairs with the acquire load in wait_slowly
  waiting::futex_wake(box.wake_word);
}

// We cannot go on before this member has taken in what we have sent, whatever it is doing. It may sleep in a wait that
// is not about messages, or its stand-in sleeps. Whoever takes the place out of `elsewhere` rings.
void Messenger::wake_blocked(int member) {
  wake(member);
  auto& elsewhere = box_[member]->elsewhere;
  if (elsewhere.load(std::memory_order_relaxed) == 0) return;
  const Reference where = elsewhere.exchange(0, std::memory_order_acquire);  // pairs with asleep_on
  if (!where) return;
  auto& word = *reinterpret_cast<Atomic<std::uint32_t>*>(base_[(where >> 48) - 1] + (where & 0xffff'ffff'ffff));
  word.fetch_add(1, std::memory_order_release);  // pairs with the acquire load in wait_slowly
  waiting::futex_wake(word);
}

void Messenger::asleep_on(Atomic<std::uint32_t>* word) {
  if (word == &mine_->wake_word) return;  // wake() rings it
  // As a rule in our own segment; where all wait for one event, in that of the team's first member.
  int owner = me_;
  auto lies_in = [&](int r) {
    return r == me_ ? process_.segment().contains(word, sizeof *word) : peer_[r]->segment.contains(word, sizeof *word);
  };
  if (word && !lies_in(owner))
    for (owner = members_ - 1; owner >= 0 && !lies_in(owner);) --owner;
  const Reference where = !word || owner < 0 ? 0
                                             : std::uint64_t(owner + 1) << 48 |
                                                   std::uint64_t(reinterpret_cast<std::byte*>(word) - base_[owner]);
  mine_->elsewhere.store(where, std::memory_order_release);  // pairs with summon
}

// By the protocol that costs least and can take it. False while there is no room for its record.
bool Messenger::dispatch(Request& request) {
  RemoteLayout where{};
  if (request.offered.transfer) return request.protocol->start(*this, request, where) == Started::yes;
  for (Cost cost{}; cost != Cost::never; cost = Cost(int(cost) + 1))
    for (const MessageProtocol* const each : Protocols::all) {
      if (!each->cost || each->cost(*this, request) != cost) continue;
      request.protocol = each;
      const Started started = each->start(*this, request, where);
      if (started != Started::no) return started == Started::yes;
    }
  return false;
}

void Messenger::start(Request& request) {
  bool under_way;
  {
    Guard guard(*this);
    start_locked(request, guard);
    under_way = !request.complete();
  }
  if (under_way) process_.progress.wake_assistant();
}

void Messenger::start_locked(Request& request, Guard& guard) {
  request.reset();
  if (request.is_send) {
    Out& out = out_[request.member];
    if (!out.waiting.empty() || !dispatch(request)) {
      request.waits = true;
      out.waiting.push(request.under_way);
      ++waiting_for_room_;
      wake_blocked(request.member);
    } else if (request.in_buffers() && !request.complete()) {
      pump_chain(request, guard);
      if (request.way == State::done) end_send(request);
    }
    return;
  }
  if (undecided_) [[unlikely]]
    decide(guard);
  UnexpectedEntry* const unexpected = unexpected_.find(request.envelope);
  if (unexpected && !static_cast<UnexpectedMessage*>(unexpected)->undecided) {
    unexpected_.remove(*unexpected);
    consume_now(static_cast<UnexpectedMessage&>(*unexpected), request, guard);
    return;
  }
  if (request.attended && !unexpected && request.member >= 0 && receive_next(request, guard)) return;
  request.posted = true;
  posted_.push(request);
}

void Messenger::start_matched(Request& request, UnexpectedMessage& message) {
  bool under_way;
  {
    Guard guard(*this);
    request.reset();
    consume_now(message, request, guard);
    under_way = !request.complete();
  }
  if (under_way) process_.progress.wake_assistant();
}

void Messenger::flush_waiting() {
  for (std::size_t member = 0; member < out_.size(); ++member) {
    Out& out = out_[member];
    while (!out.waiting.empty()) {
      Request& request = *static_cast<Request*>(out.waiting.next->owner);
      request.under_way.remove();  // dispatch links it elsewhere, or it is complete and no longer ours
      request.waits = false;
      if (!dispatch(request)) {
        request.waits = true;
        request.under_way.insert_before(*out.waiting.next);
        wake_blocked(int(member));
        break;
      }
      --waiting_for_room_;
    }
  }
}

}  // namespace nearfield::messages
