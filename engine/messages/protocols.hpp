// Protocols of messages. A row says all that is particular to one; what sends, matches, polls and cancels goes by rows.
//
//   sender                                             receiver
//   cost, start: in the order of costs, until one
//     has taken the message
//   record of the row's kind ------------------------> deliver, or keep until a receive is posted, then deliver
//   send, in every poll                                receive, in every poll
//   recall: what names it when it is cancelled ------> refuse, while it is kept
//
// A message that is offered is announced by `offered`; its receiver chooses a row that has a state, and answers by it.
//
// A new protocol is a file with its row, its place here, and its kind or state in blocks.hpp.
//
// Threads: everything here needs the messenger's lock.
#pragma once
#include "engine/messages/copy_chains.hpp"
#include "engine/messages/protocol_ranges.hpp"
#include "engine/messages/transfers.hpp"

namespace nearfield::messages {

// A message as its record tells of it.
struct Arrived {
  int member;
  Envelope envelope;
  BuffersNote note;
  const std::byte* payload;  // what the record carries of it
  std::uint64_t bytes;       // of that
};

// How willingly a message is sent by a protocol.
enum class Cost : std::uint8_t { record, buffers, long_record, offer, never };

struct MessageProtocol {
  const char* name;

  // ---- of what was offered
  State state = State::waiting;  // what the receiver answers
  // Receiver: whether it can, as far as this side knows; rows are asked in their order. May throw std::bad_alloc.
  bool (*fits)(Protocols&, Request&) = nullptr;
  // One of the blocks that both sides claim, by the sender from the back. False: it could not be had.
  bool (*copy)(Protocols&, Request&, std::uint64_t position, std::uint64_t bytes, bool from_back) = nullptr;
  // Sender: whether it can copy blocks. May throw std::bad_alloc.
  bool (*helps)(Protocols&, Request&) = nullptr;
  std::uint64_t Counts::*count = nullptr;

  // ---- sender; `where`: where the data lies, if that has been looked at
  Cost (*cost)(Protocols&, const Request&) = nullptr;
  Started (*start)(Protocols&, Request&, RemoteLayout& where) = nullptr;
  bool (*send)(Protocols&, Request&, Guard&) = nullptr;  // whether anything moved
  // What names it to the receiver; 0: it cannot be taken back.
  std::uint64_t (*recall)(const Request&) = nullptr;

  // ---- receiver
  std::size_t note = 0;       // bytes of a record before the message, from the beginning of BuffersNote
  bool carries = false;       // its record carries the message
  bool acknowledged = false;  // its sender waits for the match
  void (*deliver)(Protocols&, Request&, const Arrived&) = nullptr;
  void (*keep)(Protocols&, UnexpectedMessage&) = nullptr;    // it has to wait for its receive
  void (*unkeep)(Protocols&, UnexpectedMessage&) = nullptr;  // it does not wait any more
  void (*refuse)(Protocols&, int member, std::uint64_t offset) = nullptr;
  bool (*receive)(Protocols&, Request&, Guard&) = nullptr;  // whether anything moved
};

struct Rows {
  // By which a message is announced, and by which one that was offered moves.
  static const MessageProtocol eager, synchronous, copy_buffers, offered;
  static const MessageProtocol direct, cma, staged;
  static constexpr const MessageProtocol* all[] = {&eager,  &synchronous, &copy_buffers, &offered,
                                                   &direct, &cma,         &staged};

  // pre: kind is that of a message.
  static const MessageProtocol& of(Kind kind) {
    static constexpr const MessageProtocol* rows[] = {nullptr, &eager, &synchronous, &copy_buffers, &offered};
    static_assert(int(Kind::eager) == 1 && int(Kind::eager_synchronous) == 2 && int(Kind::buffers) == 3 &&
                  int(Kind::transfer) == 4);
    return *rows[std::size_t(kind)];
  }
  // pre: a message goes on by that state.
  static const MessageProtocol& of(State state) {
    static constexpr const MessageProtocol* rows[] = {nullptr, &direct, &cma, &staged};
    static_assert(int(State::direct) == 1 && int(State::by_calls) == 2 && int(State::staged) == 3);
    return *rows[std::size_t(state)];
  }
};

// What the record carries is the message: eager.cpp's delivery, which short messages take without a row.
void deliver_eager(Protocols& protocols, Request& request, const Arrived& message);

// What rows work with, and requests from their start by a row to their end.
struct Protocols {
  // Throws std::bad_alloc.
  Protocols(const MessengerLock& lock, Mailboxes& mailboxes, Channels& channels, Continuations& continuations,
            Counts& counts);

  // ---- sends
  // Whether it is on its way, and nothing of `data` is needed any more.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  bool any_waits_for_room() const { return waiting_for_room_ != 0; }
  void start(Request& send, Guard& guard);
  // False: it must be tried again, since there was no room for the question to the receiver.
  bool cancel(Request& send);
  // A synchronous send that lies in copy buffers as a whole need not be met any more; false: it is not there yet.
  bool leave(Request& send, Guard& guard);
  template <class Visit>
  void each_send(Visit visit) const {
    for (const List& list : waiting_) list.each<Request>(visit);
    transfers.each_offered(visit);
    in_progress.sends.each(visit);
  }

  // ---- receives
  // The message for a receive.
  void give(Request& receive, Kind kind, const Arrived& message) {
    if (kind == Kind::eager) [[likely]]
      return deliver_eager(*this, receive, message);
    Rows::of(kind).deliver(*this, receive, message);
  }
  void read_what_is_there(Request& receive, Guard& guard);

  // ---- both
  // One step of what is under way; whether any moved.
  bool go_on(Guard& guard, bool all);
  // Whether go_on() has anything to do.
  bool needs_step() const { return any_under_way() || transfers.any_retired(); }
  bool any_under_way() const {
    return waiting_for_room_ || !in_progress.receives.empty() || !in_progress.sends.empty() || transfers.any_offered();
  }
  // It is out of everything; the other side may still look at its Transfer.
  void abandon(Request& request);

  Mailboxes& mailboxes;
  Channels& channels;
  Continuations& continuations;
  InProgress in_progress;
  RemoteMemory memory;
  CopyChains chains;
  Transfers transfers;
  const Limits limits;

 private:
  bool dispatch(Request& send);
  void flush_waiting();
  void end_send(Request& request);
  void end_receive(Request& request);

  const MessengerLock& lock_;
  std::vector<List> waiting_;  // per member: sends that wait for room, in order
  std::size_t waiting_for_room_ = 0;
};

}  // namespace nearfield::messages
