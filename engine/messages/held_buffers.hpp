// Copy buffers that this process has read, and fills with its next messages to their senders.
//
//   A fills a buffer of its own ------> B reads it, holds it
//   A reads it, holds it <------------- B fills it with its next message to A
//   A fills it with its next one -----> ...
//
// A line that each core reads and then writes moves once per turn: caches pass it on together with the right to write
// (migratory sharing: Stenstrom, Brorsson, Sandberg, ISCA 1993), so the store finds it in its own cache. A store to a
// line that only the other side has read waits for that side, unless the line has rested. On Zen 4, far apart, filling
// 64 KiB takes 1.4 us in a buffer that came back, 30 in one that the same side always fills (docs/dev/decisions.md).
//
// Up to `most` bytes of each member's are held; beyond that the oldest go back to their owner.
//
// Threads: everything here needs the messenger's lock.
#pragma once
#include <array>
#include <cstdint>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

// The buffers held of one member.
class HeldBuffers {
 public:
  struct Held {
    std::uint64_t name = 0;  // as this process names it when it sends in it (of_receiver); 0: none
    std::uint32_t capacity = 0;
  };
  static constexpr std::size_t longest_chain = 8;

  // Takes the latest with room for `bytes` and less than twice that.
  Held take(std::uint64_t bytes) {
    for (unsigned i = count_; i-- > 0;)
      if (held_[i].capacity >= bytes && held_[i].capacity < 2 * bytes) return remove(i);
    return {};
  }
  // pre: has_room().
  void put(Held held) {
    held_[count_++] = held;
    bytes_ += held.capacity;
  }
  bool has_room(std::uint64_t bytes, std::uint64_t most) const {
    return count_ < longest_chain && bytes_ + bytes <= most;
  }
  Held take_oldest() { return remove(0); }  // pre: there is one
  // Takes one of this process's own; `name` is 0 if there is none.
  Held take_own() {
    for (unsigned i = 0; i < count_; ++i)
      if (!(held_[i].name & of_receiver)) return remove(i);
    return {};
  }

 private:
  Held remove(unsigned at) {
    const Held found = held_[at];
    for (--count_; at < count_; ++at) held_[at] = held_[at + 1];
    bytes_ -= found.capacity;
    return found;
  }
  std::array<Held, longest_chain> held_;  // the latest last
  std::uint64_t bytes_ = 0;
  unsigned count_ = 0;
};

}  // namespace nearfield::messages
