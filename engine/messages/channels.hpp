// Records between this process and the others: the receive queue, and a ring for each pair that talks (blocks.hpp).
//
// Silent rings are polled only now and then, so that the cost of a poll does not grow with the pairs that once
// exchanged messages.
//
// Threads: everything here needs the messenger's lock.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "engine/layout/layout.hpp"
#include "engine/messages/counts.hpp"
#include "engine/messages/fastbox.hpp"
#include "engine/messages/mailboxes.hpp"
#include "engine/messages/publication.hpp"
#include "engine/messages/queue.hpp"
#include "engine/settings/settings.hpp"

namespace nearfield::messages {

class Channels {
 public:
  // Throws std::bad_alloc.
  Channels(Mailboxes& mailboxes, Counts& counts);

  // ---- sender
  // Sends a record with `note` and `data`. False: there is no room now.
  bool push(int member, Kind kind, const Envelope& envelope, std::span<const std::byte> note, const layout::Data& data);
  // The same for a short message. False also where there is no ring.
  bool push_short(int member, Envelope envelope, const std::byte* from, std::size_t bytes);
  std::uint64_t longest_in_ring() const { return longest_eager_; }
  // Bytes of a message that one record may carry to that member.
  std::uint64_t longest_eager(int member) const { return to(member).without_ring ? cell_payload : longest_eager_; }
  // sample_from(): the receiver's report of its last sample (Ring::sample). pre: has_ring_to().
  bool has_ring_to(int member) const { return bool(to(member).ring); }
  std::uint64_t sample_from(int member) const { return to(member).ring.sample(); }

  // ---- receiver
  void report_sample(int member, std::uint32_t ticks) {
    if (FastboxReader& ring = from(member).ring) ring.report_sample(ticks);
  }
  FastboxReader& ring_from(int member) { return from(member).ring; }
  // Returns the next record in that member's ring; nullptr: none. take() follows once it has been read.
  const Record* look(int member, std::uint64_t& word) {
    From& from = this->from(member);
    return from.ring ? from.ring.look(word) : nullptr;
  }
  void take(int member, std::uint64_t word) {
    From& from = this->from(member);
    from.came = polls_;
    from.ring.take(word);
  }
  // Delivers the records that have come. Returns whether there were any. `sink.deliver(member, word, record)`: false:
  // the record has to stay, for lack of memory. `sink.awaits()`: whether a receive is posted. `all`: polls silent rings
  // as well.
  template <class Sink>
  bool poll(Sink& sink, bool all);

  // Returns whether all offsets and lengths in a record are those of memory that its writer may name. If not, a stray
  // store of a program has damaged it; then the writer is condemned, and nothing more is taken from it.
  bool is_sound(int member, std::uint64_t word, const Record& record, bool in_ring = true) {
    return kind_of(word) == Kind::eager || has_sound_note(member, word, record, in_ring);
  }
  void look_for_damage();  // in all rings

 private:
  struct To {
    FastboxWriter ring;
    std::uint32_t talked = 0;
    bool without_ring = false;  // it stays with the queue: no memory for a ring, or too many members
  };
  struct From {
    FastboxReader ring;
    std::uint32_t came = 0;  // number of the poll in which its last message came
  };
  static constexpr std::uint32_t quiet_polls = 4096;  // without a message, before a ring counts as silent
  static constexpr std::uint32_t now_and_then = 64;
  static constexpr std::uint32_t review = 1024;    // polls between two searches for rings that have become silent
  static constexpr std::size_t always_polled = 4;  // so few rings never count as silent: they cost nothing to look at
  static constexpr int in_one_poll = 16;           // records of one ring, or of the queue: the others get their turn

  const To& to(int member) const { return to_[std::size_t(member)]; }
  From& from(int member) { return from_[std::size_t(member)]; }
  bool wants_ring(To& to, std::size_t payload) const;
  bool make_ring(int member);
  // `write`: puts the envelope and so many bytes of payload into the record.
  template <class Write>
  void write_to_ring(To& to, Record& record, Kind kind, std::size_t payload, Write write);
  Cell* free_cell();
  void send_cell(int member, Cell& cell, Kind kind, std::size_t payload);
  void open_ring(int member, const Cell& cell);
  bool has_sound_note(int member, std::uint64_t word, const Record& record, bool in_ring);
  void review_silent();
  template <class Sink>
  bool poll_ring(int member, Sink& sink);
  template <class Sink>
  [[gnu::noinline]] bool take_in(int member, const Record* record, std::uint64_t word, Sink& sink);
  template <class Sink>
  [[gnu::noinline]] bool poll_silent(Sink& sink, bool all);
  template <class Sink>
  [[gnu::noinline]] bool poll_queue(Sink& sink);

  Mailboxes& mailboxes_;
  Counts& counts_;
  const Protocol protocol_;
  const std::uint64_t ring_bytes_, longest_eager_;
  const Publications publications_;
  std::vector<To> to_;
  std::vector<From> from_;
  std::vector<int> talking_, silent_;  // members whose ring is polled every time, and now and then
  std::uint32_t polls_ = 0;
  unsigned next_cell_ = 0;
  QueueReader queue_;
  Reference undelivered_ = 0;  // a cell taken out of the queue, whose message there was no memory to keep
};

template <class Sink>
inline bool Channels::poll_ring(int member, Sink& sink) {
  std::uint64_t word;
  const Record* const record = from(member).ring.look(word);
  return record && take_in(member, record, word, sink);
}

// Takes the records of a ring from `record` on.
template <class Sink>
bool Channels::take_in(int member, const Record* record, std::uint64_t word, Sink& sink) {
  From& from = this->from(member);
  bool any_came = false;
  for (int i = 1;; ++i) {
    const bool awaited = sink.awaits();
    if (!is_sound(member, word, *record)) [[unlikely]]
      break;
    if (!sink.deliver(member, word, *record)) break;
    from.ring.take(word);
    any_came = true;
    // Stop at the last message that a receive awaits: later receives take theirs from the ring without a copy, and a
    // look at an empty ring would take the line from the writer that fills it next.
    if (awaited && !sink.awaits()) break;
    if (i == in_one_poll || !(record = from.ring.look(word))) break;
  }
  if (any_came) from.came = polls_;
  return any_came;
}

// Goes on after the last awaited record, unlike take_in(): cells are few, and a sender uses the same for all peers.
template <class Sink>
bool Channels::poll_queue(Sink& sink) {
  bool any_came = false;
  const auto at = [this](Reference r) -> Cell& { return mailboxes_.cell_at(r); };
  for (int i = 0; i < in_one_poll; ++i) {
    const Reference reference = undelivered_ ? std::exchange(undelivered_, 0) : dequeue(mailboxes_.own(), queue_, at);
    if (!reference) break;
    Cell& cell = at(reference);
    const int member = int(reference >> 48) - 1;
    const std::uint64_t word = cell.record.word.load(std::memory_order_relaxed);  // ordered by the queue
    if (bytes_of(word) > cell_payload || !is_sound(member, word, cell.record, false)) [[unlikely]] {
      mailboxes_.condemn(member);
    } else if (kind_of(word) == Kind::fastbox) {
      open_ring(member, cell);
    } else if (!sink.deliver(member, word, cell.record)) {
      undelivered_ = reference;
      break;
    }
    release(queue_, reference, cell);
    any_came = true;
  }
  return any_came;
}

template <class Sink>
bool Channels::poll_silent(Sink& sink, bool all) {
  if (talking_.size() > always_polled && polls_ % review == 0) review_silent();
  if (polls_ % now_and_then != 0 && !all) return false;
  bool any_came = false;
  for (std::size_t i = 0; i < silent_.size(); ++i) {
    const int member = silent_[i];
    if (!poll_ring(member, sink)) continue;
    any_came = true;
    talking_.push_back(member);
    silent_[i--] = silent_.back();
    silent_.pop_back();
  }
  return any_came;
}

// If nothing has come, this reads one line of each ring that is not silent, and that of the queue.
template <class Sink>
bool Channels::poll(Sink& sink, bool all) {
  bool any_came = false;
  ++polls_;
  for (std::size_t i = 0; i < talking_.size(); ++i) any_came |= poll_ring(talking_[i], sink);
  if (!silent_.empty() || talking_.size() > always_polled) [[unlikely]]
    any_came |= poll_silent(sink, all);
  if (queue_.any() || undelivered_ || mailboxes_.own().head.load(std::memory_order_relaxed)) [[unlikely]]
    any_came |= poll_queue(sink);
  return any_came;
}

}  // namespace nearfield::messages
