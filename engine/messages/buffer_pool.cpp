#include "engine/messages/buffer_pool.hpp"

#include <utility>

#include "engine/copying/handover.hpp"

namespace nearfield::messages {

BufferPool::BufferPool(Mailboxes& mailboxes)
    : mailboxes_(mailboxes),
      buffers_(mailboxes.process().copy_buffers()),
      held_(std::size_t(mailboxes.count())),
      most_held_(buffers_.span() / 4 / std::uint64_t(std::max(mailboxes.count() - 1, 1)) +
                 HeldBuffers::longest_chain * memory::CopyBuffers::unit),
      taken_(std::max<std::size_t>(buffers_.span() / memory::CopyBuffers::unit, 1)) {}

void BufferPool::prepare(CopyBuffer& buffer, bool returning) {
  buffer.filled.store(0, std::memory_order_relaxed);
  buffer.next.store(0, std::memory_order_relaxed);
  buffer.released.store(0, std::memory_order_relaxed);
  buffer.drain = buffer.sample = 0;
  buffer.returning = returning;
}

void BufferPool::prepare_own(std::uint64_t offset, std::uint64_t whole, bool stays) const {
  CopyBuffer& buffer = sent(mailboxes_.me(), offset);
  buffer.capacity = std::uint32_t(whole - sizeof(CopyBuffer));
  buffer.stays = stays;
  prepare(buffer, false);
}

std::uint64_t BufferPool::take(int member, std::uint64_t bytes, unsigned spared) {
  // Kinds of stores have short buffers of their own.
  const bool stays = bytes <= copying::HandoverRows::in_own_buffers;
  if (const auto held = stays ? HeldBuffers::Held{} : held_[std::size_t(member)].take(bytes); held.name) {
    own_held_ -= !(held.name & of_receiver);
    prepare(sent(member, held.name), true);
    return held.name;
  }
  constexpr std::uint64_t unit = memory::CopyBuffers::unit;
  const std::uint64_t whole = (sizeof(CopyBuffer) + bytes + unit - 1) / unit * unit;
  if (buffers_.free_bytes() < buffers_.span() / 4) reclaim();
  const std::uint64_t offset = buffers_.take(whole, spared ? buffers_.span() / spared : 0);
  if (!offset) return 0;
  prepare_own(offset, whole, stays || is_short());
  taken_[taken_end_++ % taken_.size()] = offset;
  return offset;
}

void BufferPool::put_back(int member, std::uint64_t name) {
  const CopyBuffer& buffer = sent(member, name);
  if (buffer.returning) return hold(member, {name, buffer.capacity});
  --taken_end_;
  buffers_.put_back(name, sizeof(CopyBuffer) + buffer.capacity);
}

void BufferPool::read(int member, std::uint64_t name) {
  const CopyBuffer& buffer = received(member, name);
  const HeldBuffers::Held read{name ^ of_receiver, buffer.capacity};
  const bool own = !(read.name & of_receiver);
  if (buffer.stays || buffer.capacity > most_held_ || (own && is_short())) release(member, read);
  else hold(member, read);
}

void BufferPool::hold(int member, const HeldBuffers::Held& read) {
  HeldBuffers& held = held_[std::size_t(member)];
  while (!held.has_room(read.capacity, most_held_)) {
    const auto oldest = held.take_oldest();
    own_held_ -= !(oldest.name & of_receiver);
    release(member, oldest);
  }
  held.put(read);
  own_held_ += !(read.name & of_receiver);
}

void BufferPool::release(int member, const HeldBuffers::Held& held) {
  sent(member, held.name).released.store(1, std::memory_order_release);  // SYNC: buffer-released
}

// What comes back to the pool is for all members.
void BufferPool::release_own_held() {
  for (int member = 0; own_held_ > 0 && member < mailboxes_.count(); ++member)
    for (HeldBuffers::Held own; (own = held_[std::size_t(member)].take_own()).name; --own_held_) release(member, own);
}

std::uint64_t BufferPool::take_spare(const Request& request, int member) {
  constexpr std::uint64_t half = spare_buffer_bytes / 2;
  auto released = [&](unsigned turn) {
    return sent(member, spare() + turn % 2 * half).released.load(std::memory_order_acquire) !=
           0;  // SYNC: buffer-released
  };
  if (!spare_user_) {
    const bool gone = spare_turn_ && mailboxes_.peer(spare_member_).gone();  // nobody reads them any more
    for (unsigned turn = 0; turn < std::min(spare_turn_, 2u); ++turn)
      if (!gone && !released(turn)) return {};
    spare_turn_ = 0;
  } else if (spare_user_ != &request || (spare_turn_ >= 2 && !released(spare_turn_))) {
    return {};
  }
  spare_user_ = &request;
  spare_member_ = member;
  const std::uint64_t offset = spare() + spare_turn_++ % 2 * half;
  prepare_own(offset, half, true);
  return offset;
}

// Looks at few, since those of a slow receiver may be in the way.
void BufferPool::reclaim() {
  constexpr unsigned looks = 64, slow_ones = 8;
  release_own_held();
  unsigned slow = 0;
  for (unsigned i = 0; i < looks && slow < slow_ones && taken_begin_ != taken_end_; ++i) {
    const std::uint64_t offset = taken_[taken_begin_++ % taken_.size()];
    CopyBuffer& buffer = sent(mailboxes_.me(), offset);
    if (buffer.released.load(std::memory_order_acquire)) {  // SYNC: buffer-released
      buffers_.put_back(offset, sizeof(CopyBuffer) + buffer.capacity);
    } else {
      taken_[taken_end_++ % taken_.size()] = offset;
      ++slow;
    }
  }
}

}  // namespace nearfield::messages
