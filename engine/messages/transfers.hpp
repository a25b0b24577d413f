// Messages whose receiver matches them first and then tells the sender how they move.
//
//   sender                                            receiver
//   Transfer {bytes, from: where the data lies}
//   record (rendezvous) ----------------------------> waits for its receive, if there is none
//                                                     chooses, and answers (answers.cpp):
//   direct, by_calls: blocks claimed from either end (single_copy.hpp)
//                     <-- state, to, length ----------
//   claims from the back, copies, back += 1           claims from the front, copies, front += 1
//   front + back == blocks: buffer is free            front + back == blocks: message is there, released = 1
//   staged: copy buffers (copy_chains.hpp), where the record names one, or the receiver finds them cheaper
//                     <-- state ----------------------
//   first: names the first, unless the record did     reads them; released = 1
//   done, cancelled: the record carried the message, or the sender has withdrawn it
//
// The sender reuses the Transfer once `released` is 1. Everything that a side stores in the Transfer is published by
// state (receiver), back (sender) or the record (sender, at first).
//
// That both sides claim blocks, in memory that both reach, is from Hybrid MPI (Friedley et al., SC'13).
//
// Threads: everything here needs the messenger's lock, which the steps let go while they copy.
#pragma once
#include <vector>

#include "engine/messages/channels.hpp"
#include "engine/messages/continuations.hpp"
#include "engine/messages/in_progress.hpp"
#include "engine/messages/lock.hpp"
#include "engine/messages/protocol_chooser.hpp"
#include "engine/messages/remote_memory.hpp"
#include "engine/messages/single_copy.hpp"

namespace nearfield::messages {

struct Protocols;

class Transfers {
 public:
  // Throws std::bad_alloc.
  Transfers(Mailboxes& mailboxes, Channels& channels, RemoteMemory& memory, InProgress& in_progress,
            Continuations& continuations, Counts& counts);
  // Allocates more Transfers. False: there is no memory.
  bool add();

  // ---- sender
  // Bytes that the record of a Transfer carries.
  static constexpr std::uint64_t longest_carried = 512 - sizeof(Note);
  // Sends the record of a message with a Transfer. `where`: place of the data, if known; `first`: names its first copy
  // buffer, 0: none. False: there is no room now. A message for which there never will be room ends with an error.
  bool offer(Request& request, const RemoteLayout& where, std::uint64_t first = 0);
  // Returns whether any answer has come. Answered sends are under way then, or complete.
  bool take_answers(Protocols& protocols);
  bool any_offered() const { return !offered_.empty() || !listed_.empty(); }
  template <class Visit>
  void each_offered(Visit visit) const {
    offered_.each<Request>(visit);
    listed_.each<Request>(visit);
  }
  // Ends the search for its answer.
  void stop_looking(Request& request);
  // Does one step of blocks that both sides copy. Returns whether it moved.
  bool send_blocks(Protocols& protocols, Request& request, Guard& guard);
  // retire(): the send is complete, but its receiver may still look at the Transfer. give_up(): it was abandoned.
  void retire(Request& request);
  void give_up(Request& request);
  bool any_retired() const { return !retired_.empty(); }
  void reclaim();  // frees those that were released, of a bounded number of retired ones, in turn
  // Returns whether it goes through copy buffers without an offer, as its receiver has advised (protocol_chooser.hpp).
  bool skips_offer(const Request& request) {
    return peer_[std::size_t(request.member)].offers.skip(request.data.bytes, request.attended);
  }
  bool tries_ways() const { return tries_ways_; }

  // ---- receiver
  void accept(Protocols& protocols, Request& request, const Note& note);
  bool receive_blocks(Protocols& protocols, Request& request, Guard& guard);
  // Gives the last answer, and releases the Transfer. An unlisted one may then already be another message's.
  void acknowledge(int member, std::uint64_t transfer, State state);
  void release(Request& request);
  void forget(const Request& request);

 private:
  Transfer& of(int member, std::uint64_t offset) const { return mailboxes_.at<Transfer>(member, offset); }
  Transfer* make(std::uint64_t& offset);
  bool begin(Request& request, const RemoteLayout& where, std::uint64_t first);
  void take_back(Request& request);
  void take_answer(Protocols& protocols, Request& request);
  void begin_send(Protocols& protocols, Request& request);
  State choose(Protocols& protocols, Request& request);
  void prepare(Request& request, State state);
  ProtocolChooser::Estimate estimate(const reach::MemoryMapper& mapper, double bytes) const;
  State try_way(Request& request, bool by_calls, bool attended, bool mapped);
  void report(const Request& request, const ProtocolChooser& chooser) const;
  bool copy_block(Protocols& protocols, Request& request, Guard& guard, bool from_back);
  void answer(int member, std::uint64_t transfer, State state);
  void enlist(int member, std::uint64_t transfer);

  struct PerMember {
    ProtocolChooser chooser;  // for messages from it
    Offers offers;            // for messages to it
  };
  Mailboxes& mailboxes_;
  Channels& channels_;
  RemoteMemory& memory_;
  InProgress& in_progress_;
  Continuations& continuations_;
  Counts& counts_;
  reach::InFlightBuffers& in_flight_buffers_;
  const bool tries_ways_;  // trials choose the protocol
  std::vector<PerMember> peer_;
  List offered_, listed_;  // sends that wait for an answer: those that are looked at, and the others (answers.cpp)
  unsigned offered_count_ = 0;
  std::vector<std::uint64_t> free_;
  std::vector<std::uint64_t> retired_;  // Transfers of ended sends that their receivers have not released
  std::size_t retired_at_ = 0;          // where reclaim() looks next
  std::size_t all_ = 0;                 // allocated so far
};

}  // namespace nearfield::messages
