#include "engine/context/rounds.hpp"

#include "engine/base/log.hpp"
#include "engine/base/out_of_memory.hpp"

namespace nearfield::context {
namespace {

constexpr std::uint8_t oversubscribed_kind = 2;  // rep movsb
constexpr unsigned clock_bits = 24;
constexpr std::uint64_t between_shortages = 64;  // ticks
constexpr std::size_t least_room = 16 << 10;     // shorter buffers are cut from one of that length

}  // namespace

// ---------------------------------------------------------------- buffers of the span

SpanBuffers::~SpanBuffers() {
  if (!span_) return;
  const std::lock_guard lock(span_->holders_mutex());
  put_back(~std::uint64_t{0});
  span_->remove(*this);
}

void SpanBuffers::put_back(std::uint64_t read) {
  const auto free = [&](Held& held) {
    if (!held.offset || held.tick > read) return;
    span_->put_back(held.offset, held.bytes);
    held.offset = 0;
  };
  for (Held& held : held_) free(held);
  free(open_);
}

// Every buffer has at least one reader, which consumes the buffer's tick only after reading it.
void SpanBuffers::put_back_read() {
  std::uint64_t least = ~std::uint64_t{0};
  for (const ContextControlBlock* const words : members_.words)
    if (words != members_.mine)
      least = std::min(least, words->consumed.load(std::memory_order_acquire));  // SYNC: consumed
  put_back(least);
}

std::size_t SpanBuffers::take(std::uint64_t tick, std::size_t bytes) try {
  if (!span_) span_ = &members_.process.copy_buffers();
  memory::CopyBuffers& span = *span_;
  const std::lock_guard lock(span.holders_mutex());
  const std::size_t lines = (bytes + 63) / 64 * 64;
  if (open_.offset && open_.used + lines <= open_.bytes) {
    open_.tick = tick;
    return open_.offset + std::exchange(open_.used, open_.used + lines);
  }
  put_back(std::max(ticks_.credits(), tick > buffers ? tick - buffers : 0));
  if (open_.offset) {
    held_[open_.tick % buffers] = open_;  // an exchange in one would empty it before the index is read
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

// ---------------------------------------------------------------- rounds

Rounds::~Rounds() {
  if (own_offset_) members_.process.arena().free(own_offset_);
}

// Collective, in the first call that needs copy buffers. If one member has no memory, all throw Refused.
void Rounds::settle() {
  memory::Arena& arena = members_.process.arena();
  if (state_ == State::unknown) {
    const std::size_t bytes = staging_bytes(members_.shape.buffer_bytes);
    // It may be there from a call that was broken off.
    auto offset =
        own_offset_ ? Result<std::size_t>{own_offset_} : arena.allocate(bytes, 4096, memory::Component::copy_buffers);
    if (offset) own_offset_ = *offset;
    else log_line(LogLevel::info, "no memory for copy buffers: %s", offset.error().text.c_str());
    members_.mine->staging.store(offset ? *offset : no_staging, std::memory_order_relaxed);  // published by posted
    ticks_.barrier();
    bool all = true;
    for (const ContextControlBlock* member : members_.words) {
      const std::uint64_t theirs = member->staging.load(std::memory_order_relaxed);
      if (theirs == 0) calls_.report_lengths(false);
      all &= theirs != no_staging;
    }
    state_ = all ? State::settled : State::refused;
  }
  if (state_ == State::settled) return;
  if (own_offset_) arena.free(std::exchange(own_offset_, 0));
  throw Refused("a member has no room for copy buffers");
}

void Rounds::begin(std::size_t length) {
  length_ = length;
  if (state_ != State::settled) settle();
  // After rooted rounds the readers of our last buffers may not have consumed them.
  if (rooted_) ticks_.wait_all_consumed(ticks_.now());
  rooted_ = false;
}

void Rounds::begin_rooted(std::size_t length) {
  length_ = length;
  if (state_ != State::settled) settle();
  rooted_ = true;
}

std::byte* Rounds::my_buffer(std::uint64_t tick, std::size_t bytes, BufferUse use, int reader) {
  const int rank = members_.rank, size = members_.size;
  std::size_t offset = 0;
  std::uint64_t kind = oversubscribed_kind;
  int owner = rank;
  if (members_.shape.oversubscribed() || !bytes) {
  } else if (size == 2 && !rooted_) {
    owner = int((unsigned(rank) + tick / buffers) % 2);
    kind = copying::returning_kind | (owner == rank ? 0 : BufferPlace::returned_bit);
  } else {
    Filling& sampled = sampled_[std::size_t(use)];
    if (sampled.tick) note_sample(sampled);
    offset = span_.take(tick, bytes);
    const auto choice = handover_[std::size_t(use)].next(bytes, offset);
    kind = choice.kind | (choice.sample && !sampled.tick ? BufferPlace::sampled_bit : 0);
  }
  if (!offset) {
    const auto& owners = *members_.words[std::size_t(owner)];
    offset = owner == rank ? own_offset_ : owners.staging.load(std::memory_order_relaxed);
    offset += (tick % buffers) * members_.shape.buffer_bytes;
  }
  const BufferPlace place{offset | kind | BufferPlace::sum(length_, tick) << BufferPlace::sum_shift};
  filling_ = {tick, place.sampled() ? processor::ticks() : 0,      bytes, place,
              use,  reader < 0 ? (rank + size / 2) % size : reader};
  return members_.segments[std::size_t(owner)] + offset;
}

void Rounds::publish_place() {
  if (filling() == copying::Store::streaming) copying::fence();
  members_.mine->place[filling_.tick % buffers] = filling_.place;
  members_.mine->lengths[filling_.tick % buffers] = length_;
  if (filling_.place.sampled()) {
    const std::uint64_t took = processor::ticks_since(filling_.begun);
    Filling& sampled = sampled_[std::size_t(filling_.use)];
    sampled = filling_;
    sampled.begun = took;
  }
  filling_.tick = 0;
}

std::uint64_t Rounds::begin_reading(std::uint64_t tick, int member) const {
  bool wanted = false;
  if (member >= 0) {
    wanted = place_of(member, tick).sampled();
  } else {
    for (int r = 0; r < members_.size; ++r) wanted |= r != members_.rank && place_of(r, tick).sampled();
  }
  return wanted ? processor::ticks() : 0;
}

void Rounds::report_reading(std::uint64_t tick, std::uint64_t took) {
  constexpr std::uint64_t most = (1u << clock_bits) - 1;
  if (!took) return;
  members_.mine->reading[tick % buffers].store(tick << clock_bits | std::min(took, most), std::memory_order_relaxed);
}

// Members try kinds at the same time, so a reader's time for all buffers counts for each writer.
void Rounds::note_sample(Filling& sample) {
  const ContextControlBlock& reader = *members_.words[std::size_t(sample.reader)];
  const std::uint64_t reported = reader.reading[sample.tick % buffers].load(std::memory_order_relaxed);
  if (reported >> clock_bits == sample.tick) {
    const std::uint64_t took = sample.begun + (reported & ((1u << clock_bits) - 1));
    handover_[std::size_t(sample.use)].note(sample.place.kind(), sample.bytes, took);
  } else if (ticks_.now() < sample.tick + 2 * buffers) {
    return;  // not read yet
  }
  sample.tick = 0;
}

}  // namespace nearfield::context
