// Messages through copy buffers.
//
//   sender                                             receiver
//   takes a buffer, record -------------------------> matched, or kept where it is until a receive is posted
//   copies a piece in, filled += piece --------------> copies out what is filled
//   full, and more to come: takes another one, next -> read to its end: holds it, goes on with the next
//   all is filled: the user's array is free            all is read: the message is there; holds the last one too
//
// Both copy at the same time, in pieces. Stores to lines that the receiver still has in its cache would wait for it, so
// the receiver sends its own next message in what it has read (held_buffers.hpp), or releases it, and the owner lets it
// rest before it is used again (buffer_pool.hpp). So a sender does not touch a buffer once it is full, or all is
// filled.
//
// A message begins only while an eighth of all is free, one that nobody has matched holds an eighth at most and goes on
// only while a quarter is free, so those that are matched mostly find something. No message waits for
// buffers of another: free space may be fragmented, and a receiver releases a buffer only when it has the next one, so
// waiting could deadlock. A matched message that finds nothing goes on through the spare buffer. One that
// finds nothing to begin with travels in its record, or stays where it is until it is matched (transfers.hpp).
//
// Threads: everything here needs the messenger's lock, which fill() and drain() let go while they copy.
#pragma once
#include <vector>

#include "engine/copying/handover.hpp"
#include "engine/messages/buffer_pool.hpp"
#include "engine/messages/channels.hpp"
#include "engine/messages/in_progress.hpp"
#include "engine/messages/lock.hpp"

namespace nearfield::messages {

class CopyChains {
 public:
  // Throws std::bad_alloc.
  CopyChains(Mailboxes& mailboxes, Channels& channels, InProgress& in_progress, Counts& counts);

  std::uint64_t longest_buffer() const { return pool_.longest(); }
  std::uint64_t longest_whole() const { return pool_.longest_whole(); }

  // ---- sender
  // Whether the message is out of the user's array, and its record on its way.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  // The first buffer of a message that goes on as a request; false: there is none for it now.
  bool begin(Request& request);
  // Whether that is enough for all of it. pre: begin().
  bool holds_whole(const Request& request) const {
    const Chain& chain = request.in_buffers()->chain;
    return chain.length <= pool_.sent(request.member, chain.first).capacity;
  }
  // Its receiver has not heard of it.
  void take_back(Request& request);
  // One step; whether anything was filled.
  bool fill(Request& request, Guard& guard);
  // Its receiver will not read it. pre: nobody copies for it.
  void recall(Request& request);
  // Its sender goes on with something else. pre: nobody copies for it.
  void end(const Request& request) { pool_.end(request); }

  // ---- receiver
  // `first`: names the first buffer of `length` bytes, 0: the Transfer will.
  void accept(Request& request, std::uint64_t first, std::uint64_t length);
  // Whether anything was read; at the end of the message the request's way is State::done.
  bool drain(Request& request, Guard& guard);
  // A message that lies in its buffer.
  void keep(UnexpectedMessage& message);
  void unkeep(const UnexpectedMessage& message) { peer_[std::size_t(message.member)].kept -= message.note.bytes; }

 private:
  struct PerMember {
    copying::Handover handover;
    struct {
      bool pending = false;
      std::uint8_t kind = 0;
      std::uint32_t number = 0;  // of samples so far
      std::uint64_t bytes = 0, ticks = 0;
    } sample;                // until the receiver tells its part
    std::uint64_t kept = 0;  // bytes of its unexpected messages that lie in its buffers
  };
  copying::Handover::Choice next_kinds(int member, std::uint64_t bytes, std::uint64_t name);
  void begin_buffer(Request& request, std::uint64_t name);
  void drop_sample(Request& request);
  bool continue_chain(Request& request);
  bool finds_first(Request& request);
  bool copy_out(UnexpectedMessage& message);
  void read(int member, std::uint64_t name, std::uint32_t ticks);

  Mailboxes& mailboxes_;
  Channels& channels_;
  InProgress& in_progress_;
  Counts& counts_;
  BufferPool pool_;
  std::vector<PerMember> peer_;
};

}  // namespace nearfield::messages
