// The copy buffers of this process as messages use them (memory/copy_buffers.hpp): taken for a message, and taken back
// when somebody has released them, the oldest first, so each of them rests for the span of them all. Before that, long
// ones go to and fro between the two who talk (held_buffers.hpp), and those of peers are filled here.
//
// The spare buffer, in the mailbox, is for one message that is matched, when there is no other: its two halves in turn.
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
  // Bytes of a message that nobody has matched which may lie in copy buffers.
  std::uint64_t longest_whole() const { return buffers_.span() / 8; }

  // The name (of_receiver) of one for a message to that member, with room for `bytes`, unless fewer than a `spared`-th
  // part of all would be left; 0: whatever is left. 0: there is none now.
  std::uint64_t take(int member, std::uint64_t bytes, unsigned spared);
  // Of the spare buffer. The next message has it when the receiver of the last one has read both halves.
  std::uint64_t take_spare(const Request& request, int member);
  // pre: it is the last one taken, and nobody has heard of it.
  void put_back(int member, std::uint64_t name);
  // That message has taken its last buffer.
  void end(const Request& request) {
    if (spare_user_ == &request) spare_user_ = nullptr;
  }
  // This side has read what that member has sent in that buffer.
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
  const std::uint64_t most_held_;     // bytes of a member
  unsigned own_held_ = 0;             // of ours, of all members
  std::vector<std::uint64_t> taken_;  // a ring: our buffers that are not back, the oldest first
  std::size_t taken_begin_ = 0, taken_end_ = 0;
  const Request* spare_user_ = nullptr;
  int spare_member_ = 0;     // to whom it sends, or the last one did
  unsigned spare_turn_ = 0;  // how often a half of the spare buffer was taken for it, or for the last one
};

}  // namespace nearfield::messages
