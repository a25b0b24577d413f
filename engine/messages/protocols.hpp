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
#pragma once
#include "engine/messages/guard.hpp"

namespace nearfield::messages {

// A message as its record tells of it.
struct Arrived {
  int member;
  Envelope envelope;
  Handed told;
  const std::byte* payload;  // what the record carries of it
  std::uint64_t bytes;       // of that
};

// The pointer for a row to a function of the messenger that several rows share.
template <auto f>
struct Shared;
template <class R, class... A, R (Messenger::*f)(A...)>
struct Shared<f> {
  static R call(Messenger& messenger, A... arguments) { return (messenger.*f)(arguments...); }
};
template <auto f>
inline constexpr auto shared = &Shared<f>::call;

struct MessageProtocol {
  const char* name;

  // ---- of what was offered
  State state = State::waiting;  // what the receiver answers
  // Receiver: whether it can, as far as this side knows; rows are asked in their order. May throw std::bad_alloc.
  bool (*fits)(Messenger&, Request&) = nullptr;
  // One of the blocks that both sides claim, by the sender from the back. False: it could not be had.
  bool (*copy)(Messenger&, Request&, std::uint64_t position, std::uint64_t bytes, bool from_back) = nullptr;
  // Sender: whether it can copy blocks. May throw std::bad_alloc.
  bool (*helps)(Messenger&, Request&) = nullptr;
  std::uint64_t Counts::*count = nullptr;

  // ---- sender; `where`: where the data lies, if that has been looked at
  Cost (*cost)(Messenger&, const Request&) = nullptr;
  Started (*start)(Messenger&, Request&, RemoteLayout& where) = nullptr;
  bool (*send)(Messenger&, Request&, Messenger::Guard&) = nullptr;  // whether anything moved
  // The offset that names it to the receiver; 0: it cannot be taken back.
  std::uint64_t (*recall)(Messenger&, const Request&) = nullptr;

  // ---- receiver
  std::size_t note = 0;       // bytes of a record before the message, from the beginning of Handed
  bool carries = false;       // its record carries the message
  bool acknowledged = false;  // its sender waits for the match
  void (*deliver)(Messenger&, Request&, const Arrived&) = nullptr;
  void (*keep)(Messenger&, UnexpectedMessage&) = nullptr;    // it has to wait for its receive
  void (*unkeep)(Messenger&, UnexpectedMessage&) = nullptr;  // it does not wait any more
  void (*refuse)(Messenger&, int member, std::uint64_t offset) = nullptr;
  bool (*receive)(Messenger&, Request&, Messenger::Guard&) = nullptr;  // whether anything moved
};

struct Messenger::Protocols {
  // By which a message is announced, and by which one that was offered moves; each with what it does.
  static const MessageProtocol eager, synchronous, copy_buffers, offered;
  struct Eager;
  struct Synchronous;
  struct CopyBuffers;
  struct Offer;
  static const MessageProtocol direct, cma, staged;
  struct Direct;
  struct Cma;
  struct Staged;
  // What those share that are announced with a Transfer.
  static std::uint64_t recall_offer(Messenger&, const Request& request);
  static void refuse_offer(Messenger&, int member, std::uint64_t transfer);
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

}  // namespace nearfield::messages
