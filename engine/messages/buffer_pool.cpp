#include "engine/messages/buffer_pool.hpp"

namespace nearfield::messages {

BufferPool::BufferPool(Mailboxes& mailboxes)
    : mailboxes_(mailboxes),
      buffers_(mailboxes.process().copy_buffers()),
      lent_(std::max<std::size_t>(buffers_.span() / memory::CopyBuffers::unit, 1)) {}

CopyBuffer& BufferPool::prepare(CopyBuffer& buffer, std::uint64_t whole) {
  buffer.filled.store(0, std::memory_order_relaxed);
  buffer.next.store(0, std::memory_order_relaxed);
  buffer.match.store(Match::none, std::memory_order_relaxed);
  buffer.released.store(0, std::memory_order_relaxed);
  buffer.capacity = std::uint32_t(whole - sizeof(CopyBuffer));
  buffer.drain = buffer.sample = 0;
  return buffer;
}

BufferPool::Taken BufferPool::take(std::uint64_t bytes, unsigned spared) {
  constexpr std::uint64_t unit = memory::CopyBuffers::unit;
  const std::uint64_t whole = (sizeof(CopyBuffer) + bytes + unit - 1) / unit * unit;
  if (buffers_.free_bytes() < buffers_.span() / 4) reclaim();
  const std::uint64_t offset = buffers_.take(whole, spared ? buffers_.span() / spared : 0);
  return {offset ? &prepare(own(offset), whole) : nullptr, offset};
}

BufferPool::Taken BufferPool::take_spare(const Request& request, int member) {
  constexpr std::uint64_t half = spare_buffer_bytes / 2;
  auto released = [&](unsigned turn) {
    return own(spare() + turn % 2 * half).released.load(std::memory_order_acquire) != 0;  // SYNC: buffer-released
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
  return {&prepare(own(offset), half), offset};
}

void BufferPool::lend(std::uint64_t offset) {
  if (offset - spare() < spare_buffer_bytes) return;
  lent_[lent_end_++ % lent_.size()] = offset;
}

// Looks at few, since those of a slow receiver may be in the way.
void BufferPool::reclaim() {
  constexpr unsigned looks = 64, slow_ones = 8;
  unsigned slow = 0;
  for (unsigned i = 0; i < looks && slow < slow_ones && lent_begin_ != lent_end_; ++i) {
    const std::uint64_t offset = lent_[lent_begin_++ % lent_.size()];
    CopyBuffer& buffer = own(offset);
    if (buffer.released.load(std::memory_order_acquire)) {  // SYNC: buffer-released
      put_back({&buffer, offset});
    } else {
      lent_[lent_end_++ % lent_.size()] = offset;
      ++slow;
    }
  }
}

}  // namespace nearfield::messages
