// The copy buffers of this process (memory/copy_buffers.hpp), used for messages. A buffer is taken for a message and
// put back after its release, the oldest first, so that each rests while the rest of the span is used. In between, a
// pair of processes may fill a long buffer in turns (held_buffers.hpp), so this process also fills buffers of its
// peers.
//
// When no buffer is free, the spare buffer in the mailbox serves one matched message, its two halves in turn.
//
// Threads: everything here needs the messenger's lock.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/memory/copy_buffers.hpp"
#include "engine/messages/held_buffers.hpp"
#include "engine/messages/mailboxes.hpp"

namespace nearfield::messages {

struct Request;

class BufferPool {
 public:
  // Throws std::bad_alloc.
  explicit BufferPool(Mailboxes& mailboxes);

  std::uint64_t longest() const { return std::clamp<std::uint64_t>(buffers_.span() / 16, 4 << 10, 128 << 10); }
  // Bytes of unmatched messages of one sender that may lie in copy buffers.
  std::uint64_t longest_whole() const { return buffers_.span() / 8; }

  // Takes a buffer with room for `bytes` for a message to that member, unless less than a `spared`-th part of the span
  // would remain (`spared` 0: nothing need remain). Returns its name (of_receiver); 0: there is none now.
  std::uint64_t take(int member, std::uint64_t bytes, unsigned spared);
  // Takes a half of the spare buffer. The next message gets it once the receiver of the last one has read both halves.
  std::uint64_t take_spare(const Request& request, int member);
  // pre: it was taken last, and has not been announced.
  void put_back(int member, std::uint64_t name);
  // Called when the message has taken its last buffer.
  void end(const Request& request) {
    if (spare_user_ == &request) spare_user_ = nullptr;
  }
  // Called when this side has read that member's message in that buffer.
  void read(int member, std::uint64_t name);
  CopyBuffer& sent(int member, std::uint64_t name) const {
    return mailboxes_.at<CopyBuffer>(name & of_receiver ? member : mailboxes_.me(), name & ~of_receiver);
  }
  CopyBuffer& received(int member, std::uint64_t name) const { return sent(member, name ^ of_receiver); }

 private:
  static void prepare(CopyBuffer& buffer, bool returning);
  void prepare_own(std::uint64_t offset, std::uint64_t whole, bool stays) const;
  bool is_short() const { return buffers_.free_bytes() < buffers_.span() / 8 * 5; }
  void hold(int member, const HeldBuffers::Held& read);
  void release(int member, const HeldBuffers::Held& held);
  void release_own_held();
  std::uint64_t spare() const { return mailboxes_.offset_of(mailboxes_.own().spare_buffer); }
  void reclaim();
  Mailboxes& mailboxes_;
  memory::CopyBuffers& buffers_;
  std::vector<HeldBuffers> held_;     // per member
  const std::uint64_t most_held_;     // bytes of buffers that are held of one member, at most
  unsigned own_held_ = 0;             // number of our own buffers in held_
  std::vector<std::uint64_t> taken_;  // a ring: our buffers that are not back, the oldest first
  std::size_t taken_begin_ = 0, taken_end_ = 0;
  const Request* spare_user_ = nullptr;
  int spare_member_ = 0;     // destination of its message, or of the last one
  unsigned spare_turn_ = 0;  // halves taken for its message, or for the last one
};

}  // namespace nearfield::messages
