// A send or receive under way, as the side that has started it sees it.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <variant>

#include "engine/base/function_ref.hpp"
#include "engine/layout/layout.hpp"
#include "engine/messages/matching.hpp"
#include "engine/reach/in_flight_buffers.hpp"

namespace nearfield::messages {

enum class Mode : std::uint8_t { standard, synchronous };
enum class ErrorKind : std::uint8_t { none, truncated, no_memory, broken, closed, died };

// A member. Written under the messenger's lock, read without it by the thread that waits.
class Member {
 public:
  Member(int member = -1) : value_(member) {}
  Member& operator=(int member) {
    value_.store(member, std::memory_order_relaxed);
    return *this;
  }
  operator int() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> value_;
};

// How far one side has come with a chain of copy buffers (copy_chains.hpp).
struct Chain {
  std::uint64_t first = 0, buffer = 0;  // names of buffers (of_receiver); `buffer`: the present one, 0: none yet
  std::uint64_t length = 0;             // bytes of the message that move
  std::uint64_t position = 0;           // of these, filled or read so far
  std::uint32_t in_buffer = 0;          // of these, in the present buffer
  std::uint32_t ticks = 0;              // receiver: of emptying the present buffer so far, if it is a sample
  bool at_end() const { return position == length; }
};

// Counts the tokens of one tag. A token is a message that we send at the other library, in place of a message that has
// come here, to meet a receive that is posted there as well (elsewhere.cpp). There is one for each message that has
// asked. Needs the messenger's lock, except lose().
class Tokens {
 public:
  // Asks for a token for a message. `of_message`: its Tokens, nullptr before that.
  void ask(Tokens*& of_message) {
    if (!of_message) of_message = this, ++messages_;
    if (tokens_.load(std::memory_order_relaxed) < messages_ && send()) tokens_.fetch_add(1, std::memory_order_relaxed);
  }
  // Called when a message gets a receive that a token has met. The token may have been sent for another message.
  void use(Tokens*& of_message) {
    lose();
    if (of_message) --messages_, of_message = nullptr;
  }
  // Called when a message that has asked no longer needs a token. Takes one back if there are more than messages.
  void withdraw() {
    if (tokens_.load(std::memory_order_relaxed) > --messages_ && drain()) lose();
  }
  // Called when a token is gone, or the receive that it has met.
  void lose() {
    if (tokens_.load(std::memory_order_relaxed) > 0) tokens_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool idle() const { return messages_ == 0 && tokens_.load(std::memory_order_relaxed) == 0; }

 protected:
  ~Tokens() = default;

 private:
  virtual bool send() = 0;   // false: not now
  virtual bool drain() = 0;  // takes back a token that has met no receive; false: there is none
  int messages_ = 0;
  std::atomic<int> tokens_{0};
};

// The other library, at which a posted receive is posted as well (elsewhere.cpp). Called under the messenger's lock,
// never by the progress thread.
struct Elsewhere {
  enum class Claim : std::uint8_t { yes, no, other, later };
  // Asks whether a message with that tag, which has come here, may have the receive. `asked`: the Tokens of the
  // message. `yes`: the receive was taken back there. `no`: it was met there. `other`: it is promised to messages with
  // another tag. `later`: not known yet; the caller asks again.
  virtual Claim claim(int tag, Tokens*& asked) = 0;

 protected:
  ~Elsewhere() = default;
};

struct Request;

// An operation that could not go on. Every poll tries it again, under the messenger's lock.
struct Stalled {
  virtual bool go_on() = 0;  // true: it need not be asked again
  Link stalled;

 protected:
  ~Stalled() = default;
};

// Starts requests when another one is complete, within the poll that finds it so. Called under the messenger's lock.
struct Follower {
  virtual void follow(FunctionRef<void(Request&)> start) = 0;
  Follower* next = nullptr;  // of those that are due

 protected:
  ~Follower() = default;
};

// ---- state of a request that is under way

// Copy buffers: how far this side has come (copy_chains.hpp).
struct InBuffers {
  Chain chain;
  std::uint8_t kind = 0;  // sender: index in copying::handover_kinds
  bool sampled = false;   // sender: measures the time of filling its present buffer
};

// One copy, in blocks that both sides claim (transfers.hpp).
struct InBlocks {
  std::uint32_t blocks = 0, done = 0;   // blocks in all, done by this side
  bool helps = false;                   // sender: it can copy into the receiver's data
  bool has_first = false;               // receiver: the first block is claimed and not yet copied
  layout::Data other_data;              // the other side's, where it can be reached
  std::shared_ptr<const void> mapping;  // keeps the other side's heap mapped
};

// A Transfer, by which sender and receiver agree on how the message moves when it is matched (transfers.hpp).
struct Offered {
  Transfer* transfer = nullptr;  // in the sender's segment; nullptr: there is none
  std::uint64_t offset = 0;      // sender: offset of the Transfer
  reach::InFlightBuffers::Slot* slot = nullptr;
  bool looked_at = false;      // sender: its answer is looked for in every poll (answers.cpp)
  bool tried = false;          // receiver: trials chose how it moves (protocol_chooser.hpp)
  bool mapped = true;          // if tried: whether the sender's memory is mapped
  std::uint64_t accepted = 0;  // receiver: when it was accepted, ns; 0: it is not timed
  std::uint64_t asked = 0;     // receiver: ns from then until the sender began to fill copy buffers
};

// State of a request from its start to its end. Each start assigns a fresh one.
struct Course {
  [[gnu::always_inline]] Course() {}  // as `= default` it would clear the room of the variant as well
  ErrorKind error = ErrorKind::none;
  State way = State::waiting;
  bool cancelled = false;
  bool posted = false;             // in the list of posted receives
  bool busy = false;               // a thread copies for it, outside of the lock
  bool waits = false;              // a send for whose record there was no room
  bool withdrawn = false;          // a send that has asked for its message back
  bool to_cancel = false;          // a send that could not ask yet
  bool claimed = false;            // receive: counted for an undecided message (Matcher::take_in_undecided)
  std::uint64_t received = 0;      // bytes, after completion
  std::uint64_t total = 0;         // receiver: bytes that the sender sends
  std::optional<int> promised;     // receive: only messages with that tag may have it (elsewhere.cpp)
  Elsewhere* elsewhere = nullptr;  // the other library while it is posted there as well (set in Matcher::take_out)
  Link under_way;                  // in a list: of sends that wait for room, of offered ones, or of InProgress
  bool alone() const { return under_way.next == under_way.previous; }  // nothing else is in that list
  Offered offered;
  std::variant<std::monostate, InBuffers, InBlocks> part;
  const InBuffers* in_buffers() const { return std::get_if<InBuffers>(&part); }
  InBuffers* in_buffers() { return std::get_if<InBuffers>(&part); }  // nullptr: it uses no copy buffers
  InBlocks* in_blocks() { return std::get_if<InBlocks>(&part); }
};

// A receive has one key (matching.hpp). Its envelope is the wanted one, and after the match that of the message.
struct Request : Entry<1>, Course {
  [[gnu::always_inline]] Request() {}
  bool is_send = false;
  Mode mode = Mode::standard;
  // Its caller stays in its call until it is complete. So a send may need steps of the sender to move its bytes, and a
  // receive may take the next record from the ring of its sender without being posted.
  bool attended = false;
  // Set last, when nothing else of the request changes any more.
  std::atomic<bool> completed{false};
  Member member;  // whom it goes to or comes from; receives from anybody: -1 until matched
  layout::Data data;
  Follower* follower = nullptr;
  bool complete() const { return completed.load(std::memory_order_acquire); }  // SYNC: request-complete

  // Undoes the effects of the last start. The fields that say what the request is to do stay.
  void reset() {
    completed.store(false, std::memory_order_relaxed);
    static_cast<Course&>(*this) = Course();
    under_way.owner = this;
  }
  // Makes it complete, without a start.
  void complete_at_once() {
    reset();
    completed.store(true, std::memory_order_relaxed);
  }
};

// A message that came before its receive.
struct SpeculativeReceive;
struct UnexpectedMessage : Entry<4> {
  int member = 0;
  bool undecided = false;                // not known yet whether its receive was met elsewhere
  Tokens* asked = nullptr;               // if undecided: its Tokens, once it has asked
  SpeculativeReceive* taking = nullptr;  // receives it into payload(), at present
  ErrorKind error = ErrorKind::none;     // of `taking`
  Note note{};
  bool carried = false;                 // payload() holds the message
  std::unique_ptr<std::byte[]> longer;  // payload that does not fit `shorter`
  std::byte shorter[64];
  bool fits() const { return note.bytes <= sizeof shorter; }
  // Whether it lies in a copy buffer and has no Transfer: its sender may be done with it and want the buffer back.
  bool lies_in_buffer() const { return note.first && !note.transfer; }
  // Makes room for the message. False: there is no memory.
  bool make_room() {
    if (!fits()) longer.reset(new (std::nothrow) std::byte[note.bytes]);
    return fits() || longer;
  }
  // Notes that payload() holds the message, and that its sender needs no answer.
  void make_carried() { carried = true, note = {0, note.bytes, 0}; }
  std::byte* payload() { return fits() ? shorter : longer.get(); }
};

}  // namespace nearfield::messages
