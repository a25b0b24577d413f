// One message under way, as its own side sees it.
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

// Written under the messenger's lock, read without it by the thread that waits.
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
  std::uint64_t first = 0, buffer = 0;  // names of buffers (of_receiver); `buffer`: where it is, 0: none yet
  std::uint64_t length = 0;             // bytes of the message that move
  std::uint64_t position = 0;           // of these, that are through
  std::uint32_t in_buffer = 0;          // bytes of this buffer
  std::uint32_t ticks = 0;              // receiver: what emptying it has taken so far, if it is a sample
  bool at_end() const { return position == length; }
};

// Tokens that stand for messages of ours with one tag where receives are posted as well (elsewhere.cpp): one for each
// message that has asked. Under the messenger's lock, but for lose().
class Tokens {
 public:
  // For a message; those of a message that has none are nullptr.
  void ask(Tokens*& of_message) {
    if (!of_message) of_message = this, ++messages_;
    if (tokens_.load(std::memory_order_relaxed) < messages_ && send()) tokens_.fetch_add(1, std::memory_order_relaxed);
  }
  // A message gets a receive that one of them has met, whoever it was sent for.
  void use(Tokens*& of_message) {
    lose();
    if (of_message) --messages_, of_message = nullptr;
  }
  // A message that has asked needs none any more: nothing has met its token, nor will.
  void withdraw() {
    if (tokens_.load(std::memory_order_relaxed) > --messages_ && drain()) lose();
  }
  // One is gone, or the receive that it has met.
  void lose() {
    if (tokens_.load(std::memory_order_relaxed) > 0) tokens_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool idle() const { return messages_ == 0 && tokens_.load(std::memory_order_relaxed) == 0; }

 protected:
  ~Tokens() = default;

 private:
  virtual bool send() = 0;   // false: not now
  virtual bool drain() = 0;  // takes one out of where it waits for a receive; false: there is none
  int messages_ = 0;
  std::atomic<int> tokens_{0};
};

// Where a posted receive is posted as well (elsewhere.cpp). Called under the messenger's lock, never by the progress
// thread.
struct Elsewhere {
  enum class Claim : std::uint8_t { yes, no, other, later };
  // A message with that tag has come here; `asked`: its tokens. `yes`: the receive is taken back there, and ours; `no`:
  // it was met there; `other`: it is promised to messages with another tag; `later`: not known yet, asked again.
  virtual Claim claim(int tag, Tokens*& asked) = 0;

 protected:
  ~Elsewhere() = default;
};

struct Request;

// What could not go on, asked again in every poll, under the messenger's lock.
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

// ---- what there is to remember of a request that is under way

// Copy buffers: how far this side has come (copy_chains.hpp).
struct InBuffers {
  Chain chain;
  std::uint8_t kind = 0;  // sender: of copying::handover_kinds
  bool sampled = false;   // sender: the costs of its present buffer are taken
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
  std::uint64_t offset = 0;      // sender: of the Transfer
  reach::InFlightBuffers::Slot* slot = nullptr;
  bool looked_at = false;      // sender: its answer is looked for in every poll (answers.cpp)
  bool tried = false;          // receiver: trials chose how it moves (protocol_chooser.hpp)
  bool mapped = true;          // of those: whether the sender's memory is
  std::uint64_t accepted = 0;  // receiver: when, if it is timed; ns
  std::uint64_t asked = 0;     // receiver: ns from there until copy buffers began to be filled
};

// What becomes of a request from its start to its end. A start assigns a fresh value.
struct Course {
  [[gnu::always_inline]] Course() {}  // as `= default` it would clear the room of the variant as well
  ErrorKind error = ErrorKind::none;
  State way = State::waiting;
  bool cancelled = false;
  bool posted = false;             // in the list of posted receives
  bool busy = false;               // a thread copies for it, outside of the lock
  bool waits = false;              // a send for whose record there was no room
  bool withdrawn = false;          // a send that has asked for its message back
  bool claimed = false;            // by a message that stays undecided until the rank is back
  std::uint64_t received = 0;      // bytes, after completion
  std::uint64_t total = 0;         // receiver: bytes that the sender sends
  std::optional<int> promised;     // to messages with that tag: their token has met it there
  Elsewhere* elsewhere = nullptr;  // where it is posted as well, from Matcher::take_out on
  Link under_way;                  // in the list of transfers, or of sends that wait for room
  bool alone() const { return under_way.next == under_way.previous; }  // in that list
  Offered offered;
  std::variant<std::monostate, InBuffers, InBlocks> part;
  const InBuffers* in_buffers() const { return std::get_if<InBuffers>(&part); }
  InBuffers* in_buffers() { return std::get_if<InBuffers>(&part); }  // nullptr: it is not under way by them
  InBlocks* in_blocks() { return std::get_if<InBlocks>(&part); }
};

// Receives are posted under one key (matching.hpp); the envelope is what is wanted, after the match what has come.
struct Request : Entry<1>, Course {
  [[gnu::always_inline]] Request() {}
  bool is_send = false;
  Mode mode = Mode::standard;
  // Its caller stays in its call until it is complete: a send may need its sender for its bytes to move, a receive need
  // not be posted for what is there.
  bool attended = false;
  // Set last, when nothing else of the request changes any more.
  std::atomic<bool> completed{false};
  Member member;  // whom it goes to or comes from; receives from anybody: -1 until matched
  layout::Data data;
  Follower* follower = nullptr;
  bool complete() const { return completed.load(std::memory_order_acquire); }  // SYNC: request-complete

  // As it was before it was started; what it is to do stays.
  void reset() {
    completed.store(false, std::memory_order_relaxed);
    static_cast<Course&>(*this) = Course();
    under_way.owner = this;
  }
  // Complete without having been under way.
  void complete_at_once() {
    reset();
    completed.store(true, std::memory_order_relaxed);
  }
};

// A message that came before its receive.
struct SpeculativeReceive;
struct UnexpectedMessage : Entry<4> {
  int member = 0;
  bool undecided = false;                // whether it is met by a receive that may be met elsewhere
  Tokens* asked = nullptr;               // then
  SpeculativeReceive* taking = nullptr;  // while it is received into its payload
  ErrorKind error = ErrorKind::none;     // of that
  Note note{};
  bool carried = false;                 // it is here, in the payload
  std::unique_ptr<std::byte[]> longer;  // payload that does not fit `shorter`
  std::byte shorter[64];
  bool fits() const { return note.bytes <= sizeof shorter; }
  // Of a sender that is through with it, and may want its buffer back.
  bool lies_in_buffer() const { return note.first && !note.transfer; }
  // For the message; false without memory.
  bool make_room() {
    if (!fits()) longer.reset(new (std::nothrow) std::byte[note.bytes]);
    return fits() || longer;
  }
  // It is: its sender has heard that it is matched, or does not ask.
  void make_carried() { carried = true, note = {0, note.bytes, 0}; }
  std::byte* payload() { return fits() ? shorter : longer.get(); }
};

}  // namespace nearfield::messages
