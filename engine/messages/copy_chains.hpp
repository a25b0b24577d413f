// Messages through copy buffers.
//
//   sender                                             receiver
//   takes a buffer, record (buffers) ----------------> matched, or kept where it is until a receive is posted
//   copies a piece in, filled += piece --------------> copies out what is filled
//   full, and more to come: takes another one, next -> read to its end: holds it, goes on with the next
//   all is filled: the user's array is free            all is read: the message is there; holds the last one too
//
// Both copy at the same time, in pieces. Stores to lines that the receiver still has in its cache would wait for it, so
// the receiver sends its own next message in what it has read (held_buffers.hpp), or releases it, and the owner lets it
// rest before it is used again (buffer_pool.hpp). So a sender does not touch a buffer once it is full, or all is
// filled; but for the first one of a message that is acknowledged, which is released and not held, and not used again
// before the message has ended.
//
// A message begins only while an eighth of all is free, one that nobody has matched holds an eighth at most and goes on
// only while a quarter is free, so those that are matched mostly find something. No message waits for
// buffers of another: free space may be fragmented, and a receiver releases a buffer only when it has the next one, so
// waiting could deadlock. A matched message that finds nothing goes on through the spare buffer. One that
// finds nothing to begin with travels in its record, or stays where it is (transfers.hpp).
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

struct Arrived;

class CopyChains {
 public:
  // Throws std::bad_alloc.
  CopyChains(Mailboxes& mailboxes, Channels& channels, InProgress& in_progress, Counts& counts);

  std::uint64_t longest_buffer() const { return pool_.longest(); }
  std::uint64_t longest_whole() const { return pool_.longest_whole(); }

  // ---- sender
  // Whether the message is out of the user's array, and its record on its way.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  // The record of a message that goes on as a request; false while there is no room for it, or no buffer.
  bool begin(Request& request);
  // One step of a chain that no Transfer goes with. Whether it moved; at its end the request's way is State::done.
  bool send(Request& request, Guard& guard);
  // Whether anything was filled. `length`: bytes of the message that move.
  bool fill(Request& request, std::uint64_t length, Guard& guard);
  // Its sender goes on with something else. pre: nobody copies for it.
  void end(const Request& request);
  // What names it to its receiver, who may refuse it; 0: it cannot be taken back.
  static std::uint64_t recall(const Request& request);

  // ---- receiver
  void accept(Request& request, const Arrived& message);
  // Whether anything was read; at the end of the message the request's way is State::done.
  bool drain(Request& request, Guard& guard);
  void keep(UnexpectedMessage& message);
  void unkeep(const UnexpectedMessage& message) { peer_[std::size_t(message.member)].kept -= message.bytes; }
  void refuse(int member, std::uint64_t first);

 private:
  struct PerMember {
    copying::Handover handover;
    copying::ReturningHandover returning;  // through held buffers
    struct {
      bool pending = false;
      bool returns = false;
      std::uint8_t kind = 0;
      std::uint32_t number = 0;  // of samples so far
      std::uint64_t bytes = 0, ticks = 0;
    } sample;                // of either, until the receiver tells its part
    std::uint64_t kept = 0;  // bytes of its unexpected messages that lie in its buffers
  };
  copying::Handover::Choice next_kinds(int member, std::uint64_t bytes, const BufferPool::Taken& taken);
  void begin_buffer(Request& request, const BufferPool::Taken& taken);
  void drop_sample(Request& request);
  void lend(const Request& request);
  bool continue_chain(Request& request, std::uint64_t length);
  bool copy_out(UnexpectedMessage& message);
  void read(int member, std::uint64_t name, std::uint32_t ticks);
  void answer(int member, std::uint64_t first, Match match);
  Match match_of(const Request& request) const;

  Mailboxes& mailboxes_;
  Channels& channels_;
  InProgress& in_progress_;
  Counts& counts_;
  BufferPool pool_;
  std::vector<PerMember> peer_;
  unsigned waiting_ = 0;  // sends whose copy buffers wait for a match, or did
};

}  // namespace nearfield::messages
