// Copy buffers of rounds.
//
//   member    my_buffer(t)     takes a buffer from the process's span (memory::CopyBuffers), and asks its Handover
//                              for the kind of stores
//             post(t)          place[t % buffers] = its offset and kind of stores; then posted = t
//   readers   buffer(m, t)     after a barrier at, or a wait for, posted = t
//             consume(t)       after reading (control_block.hpp)
//   member    my_buffer(t')    t' >= t + buffers, or t is known to be read: puts the buffer of t back
//
// Buffers are taken and put back in the order of ticks, so that all teams together write the span from end to end
// before they write a line of it again. A team holds the buffers of its last rounds, up to five of buffer_bytes();
// other contexts put them back when the span runs short. While less than half of the span is free a round uses memory
// of the team's own, of the same size, allocated at the team's first round, so rounds never fail. Oversubscribed teams
// use only that: their members share caches, and lines do not move.
//
// Two members with a CPU each use their own four as well where both give, and each fills what it has read
// (messages/held_buffers.hpp tells why): that of tick t lies in the segment of member (rank + t / buffers) % 2, so the
// other one has filled it at t - buffers. Whoever fills has read that in an earlier round, and the writer is through
// with it, since it has posted a later tick or consumed that one.
#include "engine/base/out_of_memory.hpp"
#include "engine/context/context.hpp"

#include <algorithm>

namespace nearfield::context {
namespace {

constexpr std::uint8_t oversubscribed_kind = 2;  // rep movsb
constexpr unsigned clock_bits = 24;
constexpr std::uint64_t between_shortages = 64;  // ticks
constexpr std::size_t least_room = 16 << 10;     // shorter buffers are cut from one of that length

}  // namespace

// Collective, in the first call that needs copy buffers. If one member has no memory, all throw Refused.
void CollectiveContext::settle_staging() {
  if (!staging_refused_) {
    // It may be there from a call that was broken off.
    auto offset = staging_offset_
                      ? Result<std::size_t>{staging_offset_}
                      : process_.arena().allocate(staging_bytes(buffer_bytes()), 4096, memory::Component::copy_buffers);
    if (offset) staging_offset_ = *offset;
    else log_line(LogLevel::info, "no room for copy buffers: %s", offset.error().text.c_str());
    mine_->staging.store(offset ? *offset : no_staging, std::memory_order_relaxed);  // published by posted
    post_empty();
    meet(tick_);
    for (const ContextControlBlock* member : words_) {
      const std::uint64_t theirs = member->staging.load(std::memory_order_relaxed);
      if (theirs == 0) report_lengths(false);
      staging_refused_ |= theirs == no_staging;
    }
  }
  if (!staging_refused_) {
    staging_ = process_.segment().base() + staging_offset_;
    return;
  }
  if (staging_offset_) process_.arena().free(std::exchange(staging_offset_, 0));
  throw Refused("a member has no room for copy buffers");
}

void CollectiveContext::begin_rounds(std::size_t length) {
  length_ = length;
  if (!staging_) settle_staging();
  // After rooted rounds the readers of our last buffers may not have consumed them.
  if (last_rounds_rooted_) wait_all_consumed(tick_);
  last_rounds_rooted_ = false;
}

void CollectiveContext::begin_rooted_rounds(std::size_t length) {
  length_ = length;
  if (!staging_) settle_staging();
  last_rounds_rooted_ = true;
}

void CollectiveContext::put_back(std::uint64_t read) {
  const auto free = [&](Held& held) {
    if (!held.offset || held.tick > read) return;
    span_->put_back(held.offset, held.bytes);
    held.offset = 0;
  };
  for (Held& held : held_) free(held);
  free(open_);
}

// Every buffer has at least one reader, which consumes its tick only afterwards.
std::uint64_t CollectiveContext::read_by_all() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (int r = 0; r < size_; ++r)
    if (r != rank_) least = std::min(least, words_[r]->consumed.load(std::memory_order_acquire));  // SYNC: consumed
  return least;
}

void CollectiveContext::put_back_read() { put_back(read_by_all()); }

// Returns the offset of a buffer for `tick`; 0: none can be spared.
std::size_t CollectiveContext::take_room(std::uint64_t tick, std::size_t bytes) try {
  if (!span_) span_ = &process_.copy_buffers();
  memory::CopyBuffers& span = *span_;
  const std::lock_guard lock(span.holders_mutex());
  const std::size_t lines = (bytes + 63) / 64 * 64;
  if (open_.offset && open_.used + lines <= open_.bytes) {
    open_.tick = tick;
    return open_.offset + std::exchange(open_.used, open_.used + lines);
  }
  put_back(std::max(ticks_safe_, tick > buffers ? tick - buffers : 0));
  if (open_.offset) {
    held_[open_.tick % buffers] = open_;  // not in one with what empties it, which would come before its index
    open_ = {};
  }
  bytes = std::max(bytes, least_room);
  const std::size_t spared = span.span() / 2;
  std::size_t offset = span.take(bytes, spared);
  if (!offset && tick >= next_shortage_) {
    span.ask_holders();
    offset = span.take(bytes, spared);
    if (!offset) next_shortage_ = tick + between_shortages;
  }
  if (!offset) return 0;
  span.add(*this);
  open_ = {tick, offset, bytes, lines};
  return offset;
} catch (const OutOfMemory&) {
  return 0;
}

// pre: no member reads them any more, since all have closed the team, or it was never created.
void CollectiveContext::let_go_of_buffers() {
  if (span_) {
    const std::lock_guard lock(span_->holders_mutex());
    put_back(~std::uint64_t{0});
    span_->remove(*this);
  }
  if (staging_offset_) process_.arena().free(staging_offset_);
}

std::byte* CollectiveContext::my_buffer(std::uint64_t tick, std::size_t bytes, BufferUse use, int reader) {
  std::size_t offset = 0;
  int owner = rank_;
  filling_ = {tick, 0, 0, bytes, oversubscribed_kind, false, use, reader < 0 ? (rank_ + size_ / 2) % size_ : reader};
  if (shape_.oversubscribed() || !bytes) {
  } else if (size_ == 2 && !last_rounds_rooted_) {
    owner = int((unsigned(rank_) + tick / buffers) % 2);
    filling_.kind = copying::returning_kind;
  } else {
    Filling& sampled = sampled_[std::size_t(use)];
    if (sampled.tick) note_sample(sampled);
    offset = take_room(tick, bytes);
    const auto choice = handover_[std::size_t(use)].next(bytes, offset);
    filling_.kind = choice.kind;
    filling_.sample = choice.sample && !sampled.tick;
  }
  if (!offset) {
    const std::size_t begin =
        owner == rank_ ? staging_offset_ : words_[std::size_t(owner)]->staging.load(std::memory_order_relaxed);
    offset = begin + (tick % buffers) * buffer_bytes();
  }
  filling_.place =
      offset | filling_.kind | (filling_.sample ? place_sampled : 0) | (owner == rank_ ? 0 : place_returned);
  if (filling_.sample) filling_.begun = processor::ticks();
  return base_[owner] + offset;
}

void CollectiveContext::publish_place() {
  if (filling() == copying::Store::streaming) copying::fence();
  mine_->place[filling_.tick % buffers] = filling_.place | sum_of(length_, filling_.tick) << sum_shift;
  mine_->lengths[filling_.tick % buffers] = length_;
  if (filling_.sample) {
    const std::uint64_t took = processor::ticks_since(filling_.begun);
    Filling& sampled = sampled_[std::size_t(filling_.use)];
    sampled = filling_;
    sampled.begun = took;
  }
  filling_.tick = 0;
}

std::uint64_t CollectiveContext::begin_reading(std::uint64_t tick, int member) const {
  bool wanted = false;
  if (member >= 0) {
    wanted = place_of(member, tick) & place_sampled;
  } else {
    for (int r = 0; r < size_; ++r) wanted |= r != rank_ && (place_of(r, tick) & place_sampled);
  }
  return wanted ? processor::ticks() : 0;
}

void CollectiveContext::report_reading(std::uint64_t tick, std::uint64_t took) {
  constexpr std::uint64_t most = (1u << clock_bits) - 1;
  if (took) mine_->reading[tick % buffers].store(tick << clock_bits | std::min(took, most), std::memory_order_relaxed);
}

// Members try kinds at the same time, so a reader's time for all buffers counts for each writer.
void CollectiveContext::note_sample(Filling& sample) {
  const std::uint64_t reported = words_[sample.reader]->reading[sample.tick % buffers].load(std::memory_order_relaxed);
  if (reported >> clock_bits == sample.tick) {
    const std::uint64_t took = sample.begun + (reported & ((1u << clock_bits) - 1));
    handover_[std::size_t(sample.use)].note(sample.kind, sample.bytes, took);
  } else if (tick_ < sample.tick + 2 * buffers) {
    return;  // not read yet
  }
  sample.tick = 0;
}

}  // namespace nearfield::context
