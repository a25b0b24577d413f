#include "engine/messages/partitions.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace nearfield::messages {
namespace {

constexpr int tag_of_advertisement = std::numeric_limits<int>::max();  // partitions have lower numbers

}  // namespace

Partitioned::Partitioned(const PartitionedPair& pair) : pair_(pair) {
  link_.owner = this;
  pair_.messenger.enter(link_);
}

Partitioned::~Partitioned() { pair_.messenger.leave(link_); }

bool Partitioned::close_with(std::uint64_t family) {
  if (family != pair_.family) return false;
  closed_.store(true, std::memory_order_release);  // SYNC: partitioned-closed
  return true;
}

void Partitioned::prepare(Request& request, bool sends, int tag, const layout::Data& data) const {
  request.is_send = sends;
  request.mode = Mode::standard;
  request.member = pair_.member;
  request.envelope = {pair_.context, pair_.source, tag};
  request.data = data;
}

bool Partitioned::all_complete(const Request* requests, std::uint64_t count, std::atomic<std::uint64_t>& seen) {
  std::uint64_t at = seen.load(std::memory_order_relaxed);
  while (at < count && requests[at].complete()) ++at;
  seen.store(at, std::memory_order_relaxed);
  return at == count;
}

// ---------------------------------------------------------------- the sender's side

PartitionedSend::PartitionedSend(const PartitionedPair& pair, const Partitions& partitions)
    : Partitioned(pair), marked_(std::make_unique<std::atomic<std::uint32_t>[]>(partitions.count)) {
  advertised_ = {partitions, BoardView::serves(partitions) ? pair.messenger.new_board(partitions) : 0};
  advertisement_.complete_at_once();
  if (advertised_.board) {
    board_ = {pair.messenger.process().segment().base() + advertised_.board, partitions};
    stalled_.reserve(partitions.count);  // nothing may be missing when one is marked
    return;
  }
  requests_ = std::make_unique<Request[]>(partitions.count);
  for (std::uint64_t i = 0; i < partitions.count; ++i) requests_[i].complete_at_once();
}

PartitionedSend::~PartitionedSend() {
  abandon();
  if (advertised_.board) pair_.messenger.retire_board(advertised_.board, starts_);
}

void PartitionedSend::start() {
  given_up_.store(false, std::memory_order_relaxed);
  reached_.store(0, std::memory_order_relaxed);
  all_sent_.store(partitions().count == 0, std::memory_order_relaxed);
  seen_.store(0, std::memory_order_relaxed);
  if (starts_++ || closed()) return;
  prepare(advertisement_, true, tag_of_advertisement,
          {reinterpret_cast<std::byte*>(&advertised_), sizeof advertised_, {}});
  pair_.messenger.start(advertisement_);
}

void PartitionedSend::send(std::uint64_t partition, const layout::Data& data) {
  Messenger& messenger = pair_.messenger;
  if (board_) {
    if (!closed() && !board_.room(starts_))
      return messenger.stall(*this, [&] { stalled_.push_back({partition, data}); });
    put(partition, data);
  } else {
    Request& request = requests_[partition];
    const Envelope envelope{pair_.context, pair_.source, int(partition)};
    if (closed() || messenger.send_at_once(pair_.member, envelope, data)) {
      request.complete_at_once();
    } else {
      prepare(request, true, int(partition), data);
      messenger.start(request);
    }
  }
  count_sent(1);
}

// When the last one is counted another thread may complete the whole, and let go of it.
void PartitionedSend::count_sent(std::uint64_t more) {
  Messenger& messenger = pair_.messenger;
  const bool threaded = messenger.threaded();
  const std::uint64_t all = partitions().count;
  const std::uint64_t before = threaded ? reached_.fetch_add(more, std::memory_order_acq_rel)
                                        : reached_.load(std::memory_order_relaxed);  // SYNC: partitions-reached
  if (!threaded) reached_.store(before + more, std::memory_order_relaxed);
  if (before + more < all) return;
  const int member = pair_.member;
  const bool by_board = bool(board_);
  if (by_board && !closed()) board_.put_last(starts_);
  all_sent_.store(true, std::memory_order_release);  // SYNC: all-sent
  if (by_board) messenger.ring(member);
  if (threaded) messenger.wake_ourselves();
}

void PartitionedSend::put(std::uint64_t partition, const layout::Data& data) {
  if (closed()) return;  // nobody will look
  board_.put(starts_, partition, data);
}

bool PartitionedSend::mark(std::uint64_t partition) {
  std::atomic<std::uint32_t>& marked = marked_[partition];  // the start that it was marked in
  const auto start = std::uint32_t(starts_);
  if (pair_.messenger.threaded()) return marked.exchange(start, std::memory_order_relaxed) != start;
  const bool first = marked.load(std::memory_order_relaxed) != start;
  marked.store(start, std::memory_order_relaxed);
  return first;
}

bool PartitionedSend::go_on() {
  if (!closed() && !board_.room(starts_)) return false;
  for (const Waiting& each : stalled_) put(each.partition, each.data);
  const std::size_t n = stalled_.size();
  stalled_.clear();
  count_sent(n);
  return true;
}

bool PartitionedSend::complete() const {
  if (!advertisement_.complete()) return false;
  return (all_sent_.load(std::memory_order_acquire) || ended()) &&  // SYNC: all-sent
         (board_ || all_complete(requests_.get(), partitions().count, seen_));
}

ErrorKind PartitionedSend::outcome() const {
  if (ended()) return why_ended();
  for (std::uint64_t i = 0; !board_ && i < partitions().count; ++i)
    if (requests_[i].error != ErrorKind::none) return requests_[i].error;
  return advertisement_.error;
}

void PartitionedSend::abandon() {
  given_up_.store(true, std::memory_order_release);  // SYNC: given-up
  pair_.messenger.abandon(advertisement_);
  pair_.messenger.unstall(*this);
  stalled_.clear();
  for (std::uint64_t i = 0; !board_ && i < partitions().count; ++i) pair_.messenger.abandon(requests_[i]);
}

// ---------------------------------------------------------------- the receiver's side

PartitionedReceive::~PartitionedReceive() { abandon(); }

void PartitionedReceive::start() {
  // The last start has ended without its data.
  if (board_ && open_.load(std::memory_order_relaxed) && !through_.load(std::memory_order_relaxed))
    pair_.messenger.count_watchers(-1);
  given_up_.store(false, std::memory_order_relaxed);
  open_.store(false, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  through_.store(false, std::memory_order_relaxed);
  seen_.store(0, std::memory_order_relaxed);
  landed_ = false;
  ++starts_;
  if (closed()) return;
  if (starts_ > 1 && !known_ && !know_partitions()) return failed_.store(true, std::memory_order_relaxed);
  if (known_) return post([&](Request& request) { pair_.messenger.start(request); });
  prepare(advertisement_, false, tag_of_advertisement,
          {reinterpret_cast<std::byte*>(&advertised_), sizeof advertised_, {}});
  advertisement_.follower = this;
  pair_.messenger.start(advertisement_);
  pair_.messenger.poll();
}

void PartitionedReceive::follow(FunctionRef<void(Request&)> start) {
  if (ended() || advertisement_.cancelled || advertisement_.error != ErrorKind::none) return;
  if (!know_partitions()) return failed_.store(true, std::memory_order_release);  // SYNC: partitions-failed
  post(start);
}

// False without memory, or where nothing has been told.
bool PartitionedReceive::know_partitions() {
  if (!advertisement_.complete() || advertisement_.received != sizeof advertised_) return false;
  const std::uint64_t count = partitions().count, bytes = partitions().bytes;
  if (advertised_.board) {
    taken_.reset(new (std::nothrow) std::atomic<bool>[count]());
    if (!taken_) return false;
    board_ = {pair_.messenger.base(pair_.member) + advertised_.board, partitions()};
    return known_ = true;
  }
  requests_.reset(new (std::nothrow) Request[std::max<std::uint64_t>(count, 1)]);
  if (!requests_) return false;
  if (!data_.dense() && data_.view.size && bytes % data_.view.size && count > 1) {
    aside_.reset(new (std::nothrow) std::byte[data_.bytes]);
    if (!aside_) return false;
  }
  return known_ = true;
}

// pre: where the data is not dense, it begins with an element.
layout::Data PartitionedReceive::part(std::uint64_t begin, std::uint64_t end) const {
  begin = std::min(begin, data_.bytes);
  end = std::min(end, data_.bytes);
  if (aside_) return {aside_.get() + begin, end - begin, {}};
  const std::int64_t offset = data_.dense() ? std::int64_t(begin)
                              : begin       ? std::int64_t(begin / data_.view.size) * data_.view.extent
                                            : 0;
  return {data_.address + offset, end - begin, data_.view};
}

void PartitionedReceive::post(FunctionRef<void(Request&)> start) {
  const std::uint64_t count = partitions().count, bytes = partitions().bytes;
  if (board_) {
    for (std::uint64_t i = 0; any_taken_ && i < count; ++i) taken_[i].store(false, std::memory_order_relaxed);
    any_taken_ = false;
    pair_.messenger.count_watchers(1);
  } else {
    for (std::uint64_t i = 0; i < count; ++i) {
      prepare(requests_[i], false, int(i), part(i * bytes, (i + 1) * bytes));
      start(requests_[i]);
    }
  }
  open_.store(true, std::memory_order_release);  // SYNC: receives-posted
}

// Takes what is there of these partitions out of the board, several that follow each other at once.
// pre: `landing_` is held.
void PartitionedReceive::take(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t bytes = partitions().bytes;
  const auto waits = [&](std::uint64_t i) {
    return i < end && !taken_[i].load(std::memory_order_relaxed) && board_.there(starts_, i);
  };
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint64_t first = i;
    while (waits(i)) ++i;
    if (i == first) continue;
    const std::uint64_t from = std::min(first * bytes, data_.bytes), to = std::min(i * bytes, data_.bytes);
    if (from < to) layout::scatter(data_, from, board_.data(starts_) + from, to - from);
    for (std::uint64_t k = first; k < i; ++k)
      taken_[k].store(true, std::memory_order_release);  // SYNC: partition-taken
  }
}

bool PartitionedReceive::complete_by_board() {
  if (through_.load(std::memory_order_acquire)) return true;  // SYNC: board-through
  if (!board_.all_there(starts_)) return ended();
  const std::lock_guard lock(landing_);
  if (through_.load(std::memory_order_relaxed)) return true;
  const std::uint64_t bytes = std::min(partitions().all(), data_.bytes);
  if (any_taken_) take(0, partitions().count);
  else if (bytes) layout::scatter(data_, 0, board_.data(starts_), bytes);
  through_.store(true, std::memory_order_release);  // SYNC: board-through
  board_.consume(starts_);
  pair_.messenger.count_watchers(-1);
  pair_.messenger.ring(pair_.member);
  return true;
}

void PartitionedReceive::land() {
  const std::lock_guard lock(landing_);
  if (std::exchange(landed_, true) || !aside_) return;
  layout::scatter(data_, 0, aside_.get(), received());
}

bool PartitionedReceive::arrived(std::uint64_t begin, std::uint64_t end) {
  if (!open_.load(std::memory_order_acquire)) return complete();  // SYNC: receives-posted
  if (aside_ || begin == end) {
    if (!complete()) return false;
    land();
    return true;
  }
  const auto [count, bytes] = partitions();
  const std::uint64_t first = bytes ? begin / bytes : 0, last = bytes ? std::min((end + bytes - 1) / bytes, count) : 0;
  const auto here = [&] {
    for (std::uint64_t i = first; i < last; ++i)
      if (!(board_ ? taken_[i].load(std::memory_order_acquire) : requests_[i].complete()))  // SYNC: partition-taken
        return false;
    return true;
  };
  if (board_ && through_.load(std::memory_order_acquire)) return true;  // SYNC: board-through
  if (here()) return true;
  if (!board_) return false;
  {
    const std::lock_guard lock(landing_);
    if (through_.load(std::memory_order_relaxed)) return true;
    any_taken_ = true;
    take(first, last);
  }
  return here();
}

bool PartitionedReceive::complete() {
  if (!open_.load(std::memory_order_acquire))                   // SYNC: receives-posted
    return ended() || failed_.load(std::memory_order_acquire);  // SYNC: partitions-failed
  return board_ ? complete_by_board() : all_complete(requests_.get(), partitions().count, seen_);
}

ErrorKind PartitionedReceive::outcome() {
  if (ended()) return why_ended();
  if (failed_.load(std::memory_order_relaxed)) return ErrorKind::no_memory;
  land();
  for (std::uint64_t i = 0; !board_ && i < partitions().count; ++i)
    if (requests_[i].error != ErrorKind::none) return requests_[i].error;
  return partitions().all() > data_.bytes ? ErrorKind::truncated : ErrorKind::none;
}

std::uint64_t PartitionedReceive::received() const {
  return open_.load(std::memory_order_relaxed) ? std::min(partitions().all(), data_.bytes) : 0;
}

void PartitionedReceive::abandon() {
  given_up_.store(true, std::memory_order_release);  // SYNC: given-up
  if (starts_) pair_.messenger.abandon(advertisement_);
  pair_.messenger.forget(*this);
  if (!open_.load(std::memory_order_acquire)) return;  // SYNC: receives-posted
  if (!board_) {
    for (std::uint64_t i = 0; i < partitions().count; ++i) pair_.messenger.abandon(requests_[i]);
  } else if (!through_.exchange(true, std::memory_order_relaxed)) {
    pair_.messenger.count_watchers(-1);
  }
}

// ---------------------------------------------------------------- boards

std::uint64_t Messenger::new_board(const Partitions& partitions) {
  const Guard guard(lock_);
  std::erase_if(retired_boards_, [&](const auto& retired) {
    if (!BoardView(process().segment().base() + retired.first, {}).through(retired.second)) return false;
    process().arena().free(retired.first);
    return true;
  });
  const auto offset =
      process().arena().allocate_zeroed(BoardView::size(partitions), line, memory::Component::fastboxes);
  return offset ? *offset : 0;
}

void Messenger::retire_board(std::uint64_t board, std::uint64_t starts) {
  const Guard guard(lock_);
  try {
    retired_boards_.emplace_back(board, starts);
  } catch (const std::bad_alloc&) {  // it stays where it is
  }
}

}  // namespace nearfield::messages
