// Rounds: long data pass through copy buffers. In each tick a member fills at most one buffer.
//
//   member    my_buffer(t)     takes a buffer, and asks its Handover for the kind of stores
//             post(t)          place[t % buffers] = its offset and kind of stores; then posted = t
//   readers   buffer(m, t)     after Ticks::meet or Ticks::wait
//             Ticks::consume   after reading
//   member    my_buffer(t')    t' >= t + buffers, or t is known to be read: puts the buffer of t back
//
// Buffers come from the process's span of copy buffers (SpanBuffers). If less than half of the span is free, a round
// uses memory of the team's own, of the same size, which the team's first round has allocated; so later rounds never
// fail. Oversubscribed teams use only that: their members share caches, and lines do not move.
//
// Two members with a CPU each also use the team's memory if both fill buffers, and each fills one that it has read
// (messages/held_buffers.hpp says why). In tick t member r fills a buffer in the segment of member
// (r + t / buffers) % 2, which the other member has filled in tick t - buffers. The other no longer uses it, since it
// has posted a later tick or consumed that one.
//
// Wrong programs call with different lengths. So place holds a hash of the writer's length and of the tick; a reader
// that expects another hash reads the writer's length from lengths[t % buffers].
#pragma once
#include "engine/context/connector.hpp"
#include "engine/copying/handover.hpp"

namespace nearfield::context {

// How a round's bytes are used; kinds of stores are tried separately for each.
enum class BufferUse : std::uint8_t { copied, folded_by_readers, folded_by_writer, count };

// Buffers of the process's span, which are taken and put back in the order of ticks, so that all teams together write
// the span from end to end before they write a line of it again. A team holds the buffers of its last rounds, up to
// five of Shape::buffer_bytes. A context that finds the span short has the others put back what has been read.
class SpanBuffers final : memory::CopyBuffers::Holder {
 public:
  SpanBuffers(const ContextMembers& members, const Ticks& ticks) : members_(members), ticks_(ticks) {}
  ~SpanBuffers();  // pre: no member reads them any more, since all have closed the team, or it was never created
  SpanBuffers(const SpanBuffers&) = delete;
  // Returns the offset of a buffer for `tick`; 0: less than half of the span is free, or there is no memory.
  std::size_t take(std::uint64_t tick, std::size_t bytes);

 private:
  struct Held {
    std::uint64_t tick = 0;
    std::size_t offset = 0, bytes = 0, used = 0;  // offset 0: none; `tick`: the last one in it
  };
  void put_back_read() override;
  void put_back(std::uint64_t read);  // buffers up to that tick

  const ContextMembers& members_;
  const Ticks& ticks_;
  memory::CopyBuffers* span_ = nullptr;  // set by the first take()
  Held held_[buffers], open_;
  // Tick from which on take() asks other contexts again for buffers that they do not need.
  std::uint64_t next_shortage_ = 0;
};

class Rounds {
 public:
  Rounds(const ContextMembers& members, Ticks& ticks, const CallLog& calls)
      : members_(members), ticks_(ticks), calls_(calls), span_(members, ticks) {}
  ~Rounds();
  Rounds(const Rounds&) = delete;

  // Begin the rounds of an operation in which all wait for all, or of a rooted one. `length`: of this member's vector
  // or block.
  void begin(std::size_t length);
  void begin_rooted(std::size_t length);
  // Returns whether we can publish buffers of so many ticks before their readers come (Connector::ready).
  bool ready(std::uint64_t ticks) { return state_ == State::settled && ticks <= buffers && ticks_.ready(ticks); }
  // Notes that all members have met at the present tick, outside of rounds.
  void all_have_met() {
    ticks_.add_credits(ticks_.now());
    rooted_ = false;
  }

  // Returns our buffer for `tick`. The caller fills it by stores of filling() and publishes it by post(tick). pre: all
  // readers have read that of tick - buffers. `reader`: the member that reports the time of reading; -1: any, since all
  // read.
  std::byte* my_buffer(std::uint64_t tick, std::size_t bytes, BufferUse use, int reader = -1);
  copying::Store filling() const { return copying::handover_kinds[filling_.place.kind()].fill; }
  void post(std::uint64_t tick) {
    if (filling_.tick == tick) publish_place();
    ticks_.post(tick);
  }

  // ---- pre: the member has posted the tick
  const std::byte* buffer(int member, std::uint64_t tick) const {
    const BufferPlace place = place_of(member, tick);
    return members_.segments[std::size_t(place.returned() ? 1 - member : member)] + place.offset();
  }
  std::size_t published_length(int member, std::uint64_t tick) const {
    const BufferPlace place = place_of(member, tick);
    if (place.of(length_, tick)) [[likely]]
      return length_;
    const std::size_t theirs = members_.words[std::size_t(member)]->lengths[tick % buffers];
    return place.of(theirs, tick) ? theirs : no_length;
  }
  // Returns the kind of stores by which to copy from that buffer.
  copying::Store emptying(int member, std::uint64_t tick) const {
    if (members_.shape.oversubscribed()) return copying::Store::temporal;
    return copying::handover_kinds[place_of(member, tick).kind()].drain;
  }
  // Calls read(), which reads buffers of `tick`, of one member or of all (-1). Returns how long it takes, for
  // report_reading(); 0: no writer asks for it.
  template <class Read>
  std::uint64_t timed(std::uint64_t tick, int member, Read read) const {
    const std::uint64_t begun = begin_reading(tick, member);
    read();
    return begun ? processor::ticks_since(begun) : 0;
  }
  void report_reading(std::uint64_t tick, std::uint64_t took);

 private:
  struct Filling {
    std::uint64_t tick = 0, begun = 0;
    std::size_t bytes = 0;
    BufferPlace place{};
    BufferUse use = BufferUse::copied;
    int reader = 0;
  };
  void settle();
  BufferPlace place_of(int member, std::uint64_t tick) const {
    return members_.words[std::size_t(member)]->place[tick % buffers];
  }
  void publish_place();
  std::uint64_t begin_reading(std::uint64_t tick, int member) const;
  void note_sample(Filling& sample);

  const ContextMembers& members_;
  Ticks& ticks_;
  const CallLog& calls_;
  SpanBuffers span_;
  enum class State : std::uint8_t { unknown, settled, refused } state_ = State::unknown;
  std::size_t own_offset_ = 0;  // of the team's own buffers in our segment
  std::size_t length_ = 0;      // ours in the present rounds
  bool rooted_ = false;         // the last rounds were those of a rooted operation
  Filling filling_;
  // Published buffers whose time of reading is not known yet; `begun` holds how long filling took.
  Filling sampled_[std::size_t(BufferUse::count)];
  copying::Handover handover_[std::size_t(BufferUse::count)];
};

}  // namespace nearfield::context
