// Messages that stay where they are until they are matched, and then move as their receiver says.
//
//   sender                                            receiver
//   Transfer {bytes, from: where the data lies}
//   record (transfer) ------------------------------> waits for its receive, if there is none
//                                                     chooses a protocol, and answers (answers.cpp):
//   direct.cpp, cma.cpp: blocks claimed from either end
//                     <-- state, to, length ----------
//   claims from the back, copies, back += 1           claims from the front, copies, front += 1
//   front + back == blocks: buffer is free            front + back == blocks: message is there, released = 1
//   staged.cpp: copy buffers (copy_chains.hpp), where the receiver finds them cheaper
//                     <-- state: staged --------------
//   state: staged to taken, by compare and exchange,
//     fills them
//   or is in no call for a while                      state: staged to direct or by_calls, by compare and exchange
//
// So a sender that may compute meanwhile can be asked as well, and its message does not wait for its next call.
//
// The sender reuses the Transfer once `released` is 1. Everything that a side stores in the Transfer is published by
// state (receiver), back (sender) or the record (sender, at first).
//
// Blocks that both sides claim, on memory that both reach: Hybrid MPI (Friedley et al., SC'13).
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

namespace nearfield::messages {

struct Arrived;
struct Protocols;

// Whether a protocol has taken a message.
enum class Started : std::uint8_t {
  no,       // it cannot
  no_room,  // it can, later: the message waits
  yes,
};

// Sender: how the message goes on. If that is staged, its receiver cannot change its mind any more.
inline State take_state(Transfer& transfer) {
  State seen = transfer.state.load(std::memory_order_acquire);  // SYNC: transfer-state
  if (seen != State::staged) return seen;
  // SYNC: transfer-state
  const bool first = transfer.state.compare_exchange_strong(seen, State::taken, std::memory_order_acquire);
  return first ? State::staged : seen;
}

// Receiver: whether it goes on so instead, since the sender has not seen that it was asked for copy buffers.
// pre: all that this state publishes is there.
inline bool change_state(Transfer& transfer, State instead) {
  State asked = State::staged;
  // SYNC: transfer-state
  return transfer.state.compare_exchange_strong(asked, instead, std::memory_order_release, std::memory_order_relaxed);
}

class Transfers {
 public:
  // Throws std::bad_alloc.
  Transfers(Mailboxes& mailboxes, Channels& channels, RemoteMemory& memory, InProgress& in_progress,
            Continuations& continuations, Counts& counts);
  // Room for some more; false without memory.
  bool add();

  // ---- sender
  // The record of its Transfer, `with` data of the message or none. `where`: where the data lies, if that was looked
  // at.
  Started offer(Request& request, const RemoteLayout& where, Kind kind, const layout::Data& with);
  // Whether any has come. What is answered is under way then, or complete.
  bool take_answers(Protocols& protocols);
  bool any_offered() const { return !offered_.empty() || !listed_.empty(); }
  template <class Visit>
  void each_offered(Visit visit) const {
    offered_.each<Request>(visit);
    listed_.each<Request>(visit);
  }
  // No answer is looked for any more.
  void stop_looking(Request& request);
  // One step of blocks that both sides copy; whether it moved.
  bool send_blocks(Protocols& protocols, Request& request, Guard& guard);
  // Nobody has heard of it.
  void take_back(Request& request);
  // Nothing of the user's buffer is needed any more; the receiver may still look at the Transfer.
  void retire(Request& request);
  void give_up(Request& request);
  bool any_retired() const { return !retired_.empty(); }
  void reclaim();  // looks at some in vain, in turn
  // Whether memory that its receiver can reach is to be copied by the sender, unasked (protocol_chooser.hpp).
  bool skips_offer(const Request& request, bool mapped);

  // ---- receiver
  void accept(Protocols& protocols, Request& request, const Arrived& message);
  bool receive_blocks(Protocols& protocols, Request& request, Guard& guard);
  // Its sender was asked for copy buffers and has not begun. Whether the message goes on without them, because that
  // lasts too long.
  bool ask_no_more(Protocols& protocols, Request& request);
  // The last answer to this Transfer. After it, an unlisted Transfer may already be another message's.
  void acknowledge(int member, std::uint64_t transfer, State state);
  void release(Request& request);
  void forget(const Request& request);
  Transfer& of(int member, std::uint64_t offset) const { return mailboxes_.at<Transfer>(member, offset); }

 private:
  Transfer* make(std::uint64_t& offset);
  bool begin(Request& request, const RemoteLayout& where);
  void take_answer(Protocols& protocols, Request& request);
  void begin_send(Protocols& protocols, Request& request);
  const MessageProtocol& choose(Protocols& protocols, Request& request);
  void prepare(Request& request, const MessageProtocol& protocol);
  ProtocolChooser::Estimate estimate(const reach::MemoryMapper& mapper, double bytes) const;
  State try_way(Request& request, bool by_calls, bool attended, bool mapped);
  void report(const Request& request, const ProtocolChooser& chooser) const;
  bool copy_block(Protocols& protocols, Request& request, Guard& guard, bool from_back);
  void answer(int member, std::uint64_t transfer, State state);
  void enlist(int member, std::uint64_t transfer);

  struct PerMember {
    ProtocolChooser chooser;  // of what it sends
    Offers offers;            // to it
  };
  Mailboxes& mailboxes_;
  Channels& channels_;
  RemoteMemory& memory_;
  InProgress& in_progress_;
  Continuations& continuations_;
  Counts& counts_;
  reach::InFlightBuffers& in_flight_buffers_;
  const bool tries_ways_;  // where there is a choice
  std::vector<PerMember> peer_;
  List offered_, listed_;  // sends that wait for an answer: those that are looked at, and the others (answers.cpp)
  unsigned offered_count_ = 0;
  std::vector<std::uint64_t> free_;
  std::vector<std::uint64_t> retired_;  // of sends that are complete while the receiver still looks
  std::size_t retired_at_ = 0;          // where reclaim() looks next
  std::size_t all_ = 0;                 // allocated so far
};

}  // namespace nearfield::messages
