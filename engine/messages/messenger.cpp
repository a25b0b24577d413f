#include "engine/messages/messenger.hpp"

#include <algorithm>
#include <cstring>

#include "engine/copying/copy.hpp"
#include "engine/messages/guard.hpp"
#include "engine/messages/queue.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint32_t talkative = 4;       // messages of a pair before it gets a fastbox
constexpr std::uint32_t quiet_polls = 4096;  // fruitless polls before a fastbox is looked at now and then only
constexpr std::uint32_t now_and_then = 64;
constexpr std::size_t always_polled = 4;         // fastboxes that cost nothing to look at
constexpr std::size_t small_synchronous = 512;   // bytes up to which a synchronous message travels with its record
constexpr int in_one_poll = 16;                  // records of one fastbox: the others get their turn
constexpr std::uint64_t kept_at_most = 8 << 20;  // bytes of one sender's unexpected messages

std::uint64_t fastbox_bytes(int members) { return members <= 16 ? 128 << 10 : members <= 64 ? 64 << 10 : 32 << 10; }

}  // namespace

Messenger::Messenger(team::Team& base)
    : team_(base), node_(base.node()), me_(base.rank()), members_(base.size()), out_(base.size()), in_(base.size()) {}

Messenger::~Messenger() {
  const std::lock_guard lock(node_.teams_mutex);
  node_.visit_messages = nullptr;
}

Result<std::unique_ptr<Messenger>> Messenger::create(team::Team& base, team::Bootstrap& bootstrap, bool threaded) {
  std::unique_ptr<Messenger> m(new Messenger(base));
  m->threaded_ = threaded;
  m->ring_bytes_ = fastbox_bytes(m->members_);
  // Not yet touched pages are zero: cells cost memory as they are first used.
  auto offset = m->node_.arena().allocate(sizeof(Mailbox), 4096);
  std::uint64_t mine = 0;
  if (offset && m->node_.settings().messages) {
    mine = *offset;
    m->mine_ = reinterpret_cast<Mailbox*>(m->node_.segment().base() + mine);
    m->mine_->tail.store(0, std::memory_order_relaxed);
    m->mine_->head.store(0, std::memory_order_relaxed);
    m->mine_->asleep.store(0, std::memory_order_relaxed);
    m->mine_->doing.store(0, std::memory_order_relaxed);
    for (Cell& cell : m->mine_->cell) cell.busy.store(0, std::memory_order_relaxed);
  }
  std::vector<std::uint64_t> offsets(m->members_);
  if (!bootstrap.allgather(&mine, offsets.data(), sizeof mine)) return Error{"the host's allgather failed"};
  for (const std::uint64_t each : offsets)
    if (!each) return Error{"messages are switched off, or a member has no shared memory for its mailbox"};
  for (int r = 0; r < m->members_; ++r) {
    m->base_.push_back(base.segment_of(r));
    m->peer_.push_back(base.peer(r));
    m->box_.push_back(reinterpret_cast<Mailbox*>(m->base_[r] + offsets[r]));
  }
  m->heap_.resize(m->members_);
  {
    const std::lock_guard lock(m->node_.teams_mutex);
    m->node_.visit_messages = [messenger = m.get()](memory::SharedHeap::Keep keep, void* context) {
      messenger->visit_exposed(keep, context);
    };
  }
  return m;
}

// ---------------------------------------------------------------- sending

std::uint64_t Messenger::eager_limit(const Out& out) const {
  if (node_.settings().protocol == Protocol::queue || out.without_box) return cell_payload;
  if (out.box && out.box.saturated()) return 256;
  return std::min<std::uint64_t>(node_.settings().eager_bytes, largest_payload(ring_bytes_));
}

bool Messenger::eager(const Out& out, const layout::Data& data) const {
  if (data.bytes > eager_limit(out)) return false;
  // What the peer can load itself need not be copied twice.
  if (data.bytes < node_.settings().direct_bytes || node_.settings().protocol != Protocol::automatic) return true;
  return node_.place_of(data.begin(), data.span()) == team::out_of_reach;
}

bool Messenger::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  Guard guard(*this);
  Out& out = out_[member];
  if (!out.waiting.empty() || !eager(out, data)) return false;
  return push(member, Kind::eager, envelope, 0, data);
}

Cell* Messenger::free_cell() {
  for (unsigned i = 0; i < cells; ++i) {
    Cell& cell = mine_->cell[next_cell_ = (next_cell_ + 1) % cells];
    if (cell.busy.load(std::memory_order_acquire) == 0) return &cell;  // pairs with poll_queue
  }
  return nullptr;
}

bool Messenger::make_fastbox(int member) {
  Cell* const cell = free_cell();
  if (!cell) return false;
  auto offset = node_.arena().allocate(sizeof(Ring) + ring_bytes_, line);
  if (!offset) {
    log_line(LogLevel::info, "no room for a fastbox, a pair goes on with the queue: %s", offset.error().text.c_str());
    out_[member].without_box = true;
    return false;
  }
  out_[member].box = FastboxWriter(reinterpret_cast<Ring*>(node_.segment().base() + *offset), ring_bytes_);
  const std::uint64_t where[2] = {*offset, ring_bytes_};
  std::memcpy(cell->record.payload, where, sizeof where);
  cell->record.word.store(record_word(Kind::fastbox, sizeof where), std::memory_order_relaxed);
  cell->busy.store(1, std::memory_order_relaxed);
  const auto at = std::uint64_t(reinterpret_cast<std::byte*>(cell) - node_.segment().base());
  enqueue(*box_[member], std::uint64_t(me_ + 1) << 48 | at, [this](Reference r) -> Cell& { return cell_at(r); });
  return true;
}

// A record for `data`, or for a transfer; false while there is no room.
bool Messenger::push(int member, Kind kind, const Envelope& envelope, std::uint64_t transfer,
                     const layout::Data& data) {
  Out& out = out_[member];
  const std::size_t prefix = kind == Kind::eager ? 0 : sizeof transfer;
  const std::size_t payload = prefix + (kind == Kind::transfer || kind == Kind::withdraw ? 0 : data.bytes);
  const Protocol protocol = node_.settings().protocol;
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
  if (prefix) std::memcpy(record->payload, &transfer, sizeof transfer);
  if (payload > prefix && data.dense()) copying::copy(record->payload + prefix, data.address, data.bytes);
  else if (payload > prefix) layout::gather(record->payload + prefix, data, 0, data.bytes);
  if (cell) {
    record->word.store(record_word(kind, payload), std::memory_order_relaxed);
    cell->busy.store(1, std::memory_order_relaxed);
    const auto at = std::uint64_t(reinterpret_cast<std::byte*>(cell) - node_.segment().base());
    enqueue(*box_[member], std::uint64_t(me_ + 1) << 48 | at, [this](Reference r) -> Cell& { return cell_at(r); });
    ++counts_.cells;
  } else {
    out.box.publish(record, kind, payload);
    ++counts_.fastbox;
  }
  wake(member);
  return true;
}

void Messenger::wake(int member) {
  Mailbox& box = *box_[member];
  if (box.asleep.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  box.bell.fetch_add(1, std::memory_order_release);  // pairs with the acquire load in wait_slowly
  waiting::futex_wake(box.bell);
}

// False while there is no room for its record.
bool Messenger::dispatch(Request& request) {
  if (!request.transfer) {
    if (request.mode == Mode::standard && eager(out_[request.member], request.data)) {
      if (!push(request.member, Kind::eager, request.envelope, 0, request.data)) return false;
      complete(request);
      return true;
    }
    begin_transfer(request);
  }
  const bool small = request.data.bytes + sizeof(std::uint64_t) <= small_synchronous;
  if (!push(request.member, small ? Kind::eager_synchronous : Kind::transfer, request.envelope, request.transfer_offset,
            request.data))
    return false;
  sending_.push(request.under_way);
  return true;
}

void Messenger::start(Request& request) {
  Guard guard(*this);
  request.completed.store(false, std::memory_order_relaxed);
  request.trouble = Trouble::none;
  request.cancelled = request.posted = request.busy = false;
  request.received = 0;
  request.transfer = nullptr;
  request.way = State::waiting;
  request.staging = request.helps = false;
  request.under_way.owner = &request;
  if (request.is_send) {
    Out& out = out_[request.member];
    if (!out.waiting.empty() || !dispatch(request)) {
      out.waiting.push(request.under_way);
      ++waiting_for_room_;
    } else if (request.staging && !request.complete()) {
      pump_send(request, guard);
      if (request.way == State::done) end_send(request);
    }
    return;
  }
  if (UnexpectedEntry* const early = unexpected_.find(request.envelope)) {
    unexpected_.remove(*early);
    consume(static_cast<Early&>(*early), request);
    return;
  }
  request.posted = true;
  posted_.push(request);
}

void Messenger::start_matched(Request& request, Early& message) {
  Guard guard(*this);
  request.completed.store(false, std::memory_order_relaxed);
  request.trouble = Trouble::none;
  request.cancelled = request.posted = request.busy = false;
  request.under_way.owner = &request;
  request.transfer = nullptr;
  request.way = State::waiting;
  consume(message, request);
}

void Messenger::flush_waiting() {
  for (Out& out : out_) {
    while (!out.waiting.empty()) {
      Request& request = *static_cast<Request*>(out.waiting.next->owner);
      request.under_way.remove();  // dispatch links it elsewhere
      if (!dispatch(request)) {
        request.under_way.insert_before(*out.waiting.next);
        break;
      }
      --waiting_for_room_;
    }
  }
}

// ---------------------------------------------------------------- receiving

void Messenger::complete(Request& request) {
  request.completed.store(true, std::memory_order_release);  // pairs with Request::complete
}

void Messenger::finish_eager(Request& request, int member, const Envelope& envelope, const std::byte* payload,
                             std::uint64_t bytes) {
  request.member = member;
  request.envelope = envelope;
  request.received = std::min(bytes, request.data.bytes);
  if (bytes > request.data.bytes) request.trouble = Trouble::truncated;
  if (request.data.dense()) copying::copy(request.data.address, payload, request.received);
  else if (request.received) layout::scatter(request.data, 0, payload, request.received);
  complete(request);
}

void Messenger::deliver(int member, std::uint64_t word, const Record& record) {
  const Kind kind = kind_of(word);
  std::uint64_t transfer = 0;
  const std::byte* payload = record.payload;
  std::uint64_t bytes = bytes_of(word);
  if (kind != Kind::eager) {
    std::memcpy(&transfer, payload, sizeof transfer);
    payload += sizeof transfer;
    bytes -= sizeof transfer;
  }
  if (kind == Kind::withdraw) return withdraw(member, transfer);
  if (posted_.size()) {
    if (Entry* const entry = posted_.match(record.envelope)) {
      Request& request = static_cast<Request&>(*entry);
      request.posted = false;
      if (kind == Kind::transfer) return accept(request, member, transfer, record.envelope);
      if (kind == Kind::eager_synchronous) acknowledge(member, transfer, State::done);
      return finish_eager(request, member, record.envelope, payload, bytes);
    }
  }
  keep_early(member, kind, record.envelope, bytes, transfer, payload);
}

void Messenger::keep_early(int member, Kind kind, const Envelope& envelope, std::uint64_t bytes, std::uint64_t transfer,
                           const std::byte* payload) {
  auto early = std::make_unique<Early>();
  early->envelope = envelope;
  early->member = member;
  early->kind = kind;
  early->transfer = transfer;
  early->bytes = bytes;
  if (kind == Kind::transfer) {
    early->bytes = transfer_of(member, transfer).bytes;
  } else if (bytes) {
    early->payload.reset(new std::byte[bytes]);
    std::memcpy(early->payload.get(), payload, bytes);
    In& in = in_[member];
    in.kept += bytes;
    if (in.kept > kept_at_most && !in.saturated && in.box) in.box.saturate(in.saturated = true);
  }
  ++counts_.unexpected;
  unexpected_.push(*early.release());
}

// The message is out of matching and belongs to us.
void Messenger::consume(Early& message, Request& request) {
  const std::unique_ptr<Early> early(&message);
  if (early->kind == Kind::transfer) return accept(request, early->member, early->transfer, early->envelope);
  if (early->kind == Kind::eager_synchronous) acknowledge(early->member, early->transfer, State::done);
  if (early->payload) {
    In& in = in_[early->member];
    in.kept -= early->bytes;
    if (in.saturated && in.kept < kept_at_most / 2) in.box.saturate(in.saturated = false);
  }
  finish_eager(request, early->member, early->envelope, early->payload.get(), early->bytes);
}

bool Messenger::probe(const Envelope& wanted, bool take, Found& found) {
  Guard guard(*this);
  UnexpectedEntry* entry = unexpected_.find(wanted);
  if (!entry) {
    if (!poll_locked(guard)) return false;
    entry = unexpected_.find(wanted);
    if (!entry) return false;
  }
  Early& early = static_cast<Early&>(*entry);
  found = {early.envelope, early.bytes, nullptr};
  if (take) {
    unexpected_.remove(early);
    found.message = &early;
  }
  return true;
}

void Messenger::cancel(Request& request) {
  Guard guard(*this);
  if (request.complete()) return;
  if (!request.is_send) {
    if (!request.posted) return;
    posted_.remove(request);
    request.posted = false;
    request.cancelled = true;
    complete(request);
    return;
  }
  if (!request.under_way.linked() || request.busy || request.way != State::waiting) return;
  List& waiting = out_[request.member].waiting;
  for (Link* link = waiting.next; link != &waiting; link = link->next) {
    if (link != &request.under_way) continue;
    // Nobody has heard of it yet.
    request.under_way.remove();
    --waiting_for_room_;
    if (request.transfer) {
      Noticeboard::clear(request.slot);
      request.slot = nullptr;
      free_transfers_.push_back(request.transfer_offset);
    }
    request.cancelled = true;
    return complete(request);
  }
  // Only the receiver knows whether it is matched. Without room for the question the message is sent as usual.
  if (request.transfer && waiting.empty())
    push(request.member, Kind::withdraw, request.envelope, request.transfer_offset, {});
}

void Messenger::withdraw(int member, std::uint64_t transfer) {
  UnexpectedEntry* const entry = unexpected_.find_if([&](const UnexpectedEntry& e) {
    const Early& early = static_cast<const Early&>(e);
    return early.member == member && early.transfer == transfer;
  });
  if (!entry) return;  // matched already
  unexpected_.remove(*entry);
  const std::unique_ptr<Early> early(static_cast<Early*>(entry));
  if (early->payload) in_[member].kept -= early->bytes;
  acknowledge(member, transfer, State::cancelled);
}

void Messenger::abandon(Request& request) {
  Guard guard(*this);
  if (request.complete()) return;
  if (request.posted) posted_.remove(request);
  if (request.under_way.linked()) {
    // Its Transfer stays as it is: the other side may still look at it.
    const bool waits = request.is_send && request.way == State::waiting && std::ranges::any_of(out_, [&](Out& out) {
                         for (Link* link = out.waiting.next; link != &out.waiting; link = link->next)
                           if (link == &request.under_way) return true;
                         return false;
                       });
    waiting_for_room_ -= waits;
    request.under_way.remove();
  }
  Noticeboard::clear(request.slot);
  request.slot = nullptr;
  request.mapping.reset();
  request.trouble = Trouble::broken;
  complete(request);
}

// ---------------------------------------------------------------- progress

bool Messenger::poll_box(int member) {
  In& in = in_[member];
  std::uint64_t word;
  bool any_came = false;
  for (int i = 0; i < in_one_poll; ++i) {
    const Record* const record = in.box.look(word);
    if (!record) break;
    deliver(member, word, *record);
    in.box.take(word);
    any_came = true;
  }
  if (any_came) in.silent = 0;
  else ++in.silent;
  return any_came;
}

bool Messenger::poll_queue() {
  bool any_came = false;
  const auto at = [this](Reference r) -> Cell& { return cell_at(r); };
  for (int i = 0; i < in_one_poll; ++i) {
    const Reference reference = dequeue(*mine_, shadow_, at);
    if (!reference) break;
    Cell& cell = at(reference);
    const int member = int(reference >> 48) - 1;
    const std::uint64_t word = cell.record.word.load(std::memory_order_relaxed);  // ordered by the queue
    if (kind_of(word) == Kind::fastbox) {
      std::uint64_t where[2];
      std::memcpy(where, cell.record.payload, sizeof where);
      in_[member].box = FastboxReader(reinterpret_cast<Ring*>(base_[member] + where[0]), where[1]);
      talking_.push_back(member);
    } else {
      deliver(member, word, cell.record);
    }
    cell.busy.store(0, std::memory_order_release);  // pairs with free_cell
    any_came = true;
  }
  return any_came;
}

bool Messenger::poll_locked(Guard& guard) {
  bool progress = false;
  for (std::size_t i = 0; i < talking_.size(); ++i) {
    const int member = talking_[i];
    progress |= poll_box(member);
    if (in_[member].silent < quiet_polls || talking_.size() <= always_polled) continue;
    silent_.push_back(member);
    talking_[i--] = talking_.back();
    talking_.pop_back();
  }
  if (!silent_.empty() && (++polls_ % now_and_then == 0 || look_at_all_.load(std::memory_order_relaxed))) {
    look_at_all_.store(false, std::memory_order_relaxed);
    for (std::size_t i = 0; i < silent_.size(); ++i) {
      const int member = silent_[i];
      if (!poll_box(member)) continue;
      progress = true;
      talking_.push_back(member);
      silent_[i--] = silent_.back();
      silent_.pop_back();
    }
  }
  progress |= poll_queue();
  if (waiting_for_room_) flush_waiting();
  if (!receiving_.empty() || !sending_.empty()) {
    // A busy request stays in its list, so the walk can go on from it after the lock was let go.
    for (Link* link = receiving_.next; link != &receiving_;) {
      Request& request = *static_cast<Request*>(link->owner);
      progress |= !request.busy && pump_receive(request, guard);
      link = link->next;
      if (request.way == State::done) end_receive(request);
    }
    for (Link* link = sending_.next; link != &sending_;) {
      Request& request = *static_cast<Request*>(link->owner);
      progress |= !request.busy && pump_send(request, guard);
      link = link->next;
      if (request.way == State::done) end_send(request);
    }
  }
  if (!retired_.empty()) reclaim();
  return progress;
}

bool Messenger::poll() {
  Guard guard(*this, std::try_to_lock);
  return guard.owns() && poll_locked(guard);
}

bool Messenger::sends_pending() {
  Guard guard(*this);
  auto waits = [this](const List& list) {
    for (Link* link = list.next; link != &list; link = link->next) {
      const int member = static_cast<Request*>(link->owner)->member;
      if (member == me_ || !(peer_[member]->left() || peer_[member]->gone())) return true;
    }
    return false;
  };
  return waits(sending_) || std::ranges::any_of(out_, [&](const Out& out) { return waits(out.waiting); });
}

void Messenger::wait(Request& request) {
  for (int i = node_.policy().crowded ? 1 : 200; i > 0; --i) {
    poll();
    if (request.complete()) return;
  }
  wait_until([&] { return request.complete(); }, [&](int m) { return request.member == m || request.member < 0; },
             nullptr, request.is_send ? "sending" : "receiving");
}

struct Messenger::SleepHost {
  Messenger& messenger;
  const std::function<bool(int)>& awaited;
  const std::function<void()>& also;
  const char* doing;
  bool reported = false;

  std::uint64_t longest_nap() const {
    return also || messenger.node_.host_needs_us() ? waiting::short_nap : ~std::uint64_t{0};
  }
  bool one_event() const { return false; }
  void progress() {
    messenger.node_.progress();
    if (also) also();
  }
  std::atomic<std::uint32_t>& bell() { return messenger.mine_->bell; }
  void before_sleep() {
    messenger.mine_->asleep.fetch_add(1, std::memory_order_seq_cst);
    messenger.look_at_all_.store(true, std::memory_order_relaxed);  // the last look before the sleep
  }
  void after_sleep() { messenger.mine_->asleep.fetch_sub(1, std::memory_order_relaxed); }
  void inspect(std::uint64_t elapsed) {
    if (messenger.inspect_also) messenger.inspect_also();
    for (int r = 0; r < messenger.members_; ++r) {
      if (r == messenger.me_ || !awaited(r) || !messenger.peer_[r]->gone() || messenger.peer_[r]->left()) continue;
      throw team::Broken("process " + std::to_string(messenger.peer_[r]->pid) + " (rank " + std::to_string(r) +
                         " of those on this node) has died; rank " + std::to_string(messenger.me_) + " was " + doing);
    }
    const double limit = messenger.node_.settings().stall_seconds;
    if (limit <= 0 || reported || double(elapsed) < limit * 1e9) return;
    reported = true;
    std::string whom;
    for (int r = 0; r < messenger.members_ && whom.size() < 60; ++r)
      if (r != messenger.me_ && awaited(r)) whom += (whom.empty() ? "" : ", ") + std::to_string(r);
    log_line(LogLevel::error, "rank %d of the %d on this node has waited %.0f s, %s; it waits for rank %s",
             messenger.me_, messenger.members_, double(elapsed) * 1e-9, doing, whom.c_str());
  }
};

void Messenger::wait_until(const std::function<bool()>& done, const std::function<bool(int)>& awaited,
                           const std::function<void()>& also, const char* doing) {
  const auto& policy = node_.policy();
  // Whoever has the CPU takes in all there is before it gives the CPU away.
  auto flag = [&] {
    for (int i = 0; i < 64; ++i) {
      const bool moved = poll();
      if (done()) return true;
      if (!moved) break;
    }
    return false;
  };
  for (int i = policy.crowded ? 2 : 200; i > 0; --i) {
    if (flag()) return;
    if (!policy.crowded) _mm_pause();
  }
  SleepHost host{*this, awaited, also, doing};
  waiting::Policy ours = policy;
  ours.sleep_at_once = false;  // that is for waits that one call ends for all
  waiting::wait_slowly(ours, flag, host);
}

void Messenger::visit_exposed(memory::SharedHeap::Keep keep, void* context) {
  noticeboard_.visit([&](void* address, std::size_t bytes) { keep(address, bytes, context); });
}

}  // namespace nearfield::messages
