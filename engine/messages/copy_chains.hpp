// Messages through copy buffers.
//
//   sender                                             receiver
//   takes a buffer, record -------------------------> matched, or kept where it is until a receive is posted
//   copies a piece in, filled += piece --------------> copies out what is filled
//   full, and more to come: takes another one, next -> read to its end: holds it, goes on with the next
//   all is filled: the user's array is free            all is read: the message is there; holds the last one too
//
// Both copy at the same time, in pieces. Stores to lines that are still in the receiver's cache would wait for it. So
// the receiver fills a buffer that it has read with its own next message (held_buffers.hpp), or releases it, and the
// owner lets it rest before the next use (buffer_pool.hpp). A sender does not touch a buffer after it has filled its
// part.
//
// A message begins only while an eighth of the span is free. An unmatched one holds an eighth at most and goes on only
// while a quarter is free, so matched ones mostly find buffers. No message waits for buffers of another: free space may
// be fragmented, and a receiver releases a buffer only when it has the next one, so waiting could deadlock. A matched
// message that finds no buffer goes on through the spare buffer. One that finds none to begin with travels in its
// record, or stays in the user's array until it is matched (transfers.hpp).
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
  // Returns whether the message has left the user's array and its record has been sent.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  // Takes the first buffer of a request. False: there is none for it now.
  bool begin(Request& request);
  // Returns whether the first buffer holds all of it. pre: begin().
  bool holds_whole(const Request& request) const {
    const Chain& chain = request.in_buffers()->chain;
    return chain.length <= pool_.sent(request.member, chain.first).capacity;
  }
  // Undoes begin(). pre: the message has not been announced.
  void take_back(Request& request);
  // Does one step. Returns whether anything was filled.
  bool fill(Request& request, Guard& guard);
  // Takes the buffers back, since the receiver will not read them. pre: nobody copies for the request.
  void recall(Request& request);
  // Called when the request fills no more buffers. pre: nobody copies for it.
  void end(const Request& request) { pool_.end(request); }

  // ---- receiver
  // Starts to receive `length` bytes. `first`: names their first buffer; 0: Transfer::first will.
  void accept(Request& request, std::uint64_t first, std::uint64_t length);
  // Does one step. Returns whether anything was read; at the end of the message the request's way is State::done.
  bool drain(Request& request, Guard& guard);
  // Keeps an unexpected message in its copy buffer, or copies it aside if its sender has too many there.
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
    } sample;                // the last one; `pending` until the receiver has reported its time
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
