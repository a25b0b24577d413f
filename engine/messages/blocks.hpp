// What two processes share to pass messages, and who writes which word.
//
// Every process owns one MessageMailbox in its segment: a receive queue and its wake word. Messages travel as records:
// an envelope and up to eager_bytes of payload, or the whereabouts of a larger message (a Transfer).
//
//   queue     Until a pair has talked a little, a record goes into a cell of its sender and the cell into the queue of
//             the receiver (queue.hpp): many writers, one reader.
//   fastbox   Then the sender makes a ring for the pair and announces it by a last cell. All later records of the pair
//             go through the ring (fastbox.hpp): one writer, one reader, header and payload in the same lines. The
//             receiver learns of the ring behind everything that came before it, so messages never overtake.
//   rendezvous
//             Longer messages are announced by a record that tells their length and, where some of it lies in copy
//             buffers already, the first of these (copy_chains.hpp): the receiver reads while the sender writes. A
//             message that does not fit one copy buffer, or whose sender wants to know when it is matched, has a
//             Transfer as well, by which the receiver says how it goes on (transfers.hpp). Where many of one sender
//             are not matched yet, their receivers say which are (answers.cpp).
//
// The queue is Nemesis' (Buntinas, Mercier, Gropp: "Design and evaluation of Nemesis", 2006).
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/context/control_block.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::messages {

using team::line;

// Wildcards, whatever the host calls them.
inline constexpr std::int32_t any = -0x7fffffff;

struct Envelope {
  std::uint64_t context;  // of the communicator
  std::int32_t source;    // rank in it
  std::int32_t tag;
  bool operator==(const Envelope&) const = default;
};

// eager: the payload is the message. rendezvous: it is a Note; what follows, if anything, is the message. withdraw: the
// sender asks to cancel the message whose Transfer the payload names. fastbox: the offset of a ring, and its capacity.
enum class Kind : std::uint32_t { none, eager, rendezvous, withdraw, fastbox, skip };

struct alignas(64) Record {
  // Writer: number << 32 | kind << 28 | marks | bytes of payload. In a ring, number n is that of its n-th
  // record: what lies there before has another one (fastbox.hpp).
  Atomic<std::uint64_t> word;
  Envelope envelope;     // writer, published by word
  std::byte beside[40];  // writer, published by word: of the payload (place_of_payload), which goes on behind
};
inline constexpr std::size_t record_header = 24, room_beside = 64 - record_header;
static_assert(offsetof(Record, beside) == record_header && sizeof(Record) == 64);

constexpr std::uint64_t record_word(Kind kind, std::size_t bytes, std::uint32_t number = 0) {
  return std::uint64_t(number) << 32 | std::uint64_t(kind) << 28 | bytes;
}
constexpr std::uint32_t number_of(std::uint64_t word) { return std::uint32_t(word >> 32); }
constexpr Kind kind_of(std::uint64_t word) { return Kind(word >> 28 & 0xf); }
constexpr std::size_t bytes_of(std::uint64_t word) { return word & 0x3ffffff; }
// A mark (publication.hpp): while the reader waits for the next one it asks for as many lines as this one has.
inline constexpr std::uint64_t ahead_of_next = 1 << 26;
// Bytes that it asks for at most: more lines than the writer fills at one go are fetched in vain.
inline constexpr std::uint64_t most_ahead = 192;

// Where the payload begins, in bytes from the record: so that it ends with a line and its whole lines are lines of the
// record, if what is left over has room beside the envelope; else behind the first line. It takes no more lines than
// one that follows the envelope at once.
constexpr std::size_t place_of_payload(std::size_t bytes) {
  const std::size_t rest = bytes % 64;
  return rest <= room_beside ? 64 - rest : 64;
}
constexpr std::size_t record_length(std::size_t payload) {
  return (place_of_payload(payload) + payload + 63) & ~std::size_t{63};
}
inline std::byte* payload_of(Record& record, std::size_t bytes) {
  return reinterpret_cast<std::byte*>(&record) + place_of_payload(bytes);
}
inline const std::byte* payload_of(const Record& record, std::size_t bytes) {
  return payload_of(const_cast<Record&>(record), bytes);
}

// A process of the node and a place in its segment: (member + 1) << 48 | offset, 0 for none.
using Reference = std::uint64_t;

inline constexpr std::size_t cell_payload = 2048 - 64 - record_header;
static_assert(record_length(cell_payload) == 2048 - 64);
struct alignas(64) Cell {
  Atomic<Reference> next;      // sender: 0 before it enqueues; then whoever enqueues behind it (queue.hpp)
  Atomic<std::uint32_t> busy;  // sender: 1 when filled; receiver: 0 when read
  alignas(64) Record record;
  std::byte more[cell_payload - 40];
};
static_assert(sizeof(Cell) == 2048);
inline constexpr unsigned cells = 64;

// A copy buffer as the sender of a message names it: its offset in the sender's segment or, with this bit, in the
// receiver's, whose buffer it is (held_buffers.hpp).
inline constexpr std::uint64_t of_receiver = 1;

// What announces a message that its record does not hold, or whose sender wants to know when it is matched.
struct Note {
  std::uint64_t transfer;  // offset of its Transfer, 0: its sender does not want to know
  std::uint64_t bytes;     // of the message
  std::uint64_t first;     // names the first copy buffer, 0: none yet
};

// A message as its record tells of it.
struct Arrived {
  int member;
  Envelope envelope;
  Note note;                 // of an eager one its bytes alone
  const std::byte* payload;  // behind the note
  std::uint64_t bytes;       // of that
  bool carried() const { return bytes == note.bytes && !note.first; }
};

// One copy buffer. A message has one, or a chain of them. It is its owner's from when it is released until it is taken;
// between these it belongs to the sender of the message in it, then to who has read that, who may send the next message
// to its sender in it: so both of a pair are senders here.
struct alignas(64) CopyBuffer {
  Atomic<std::uint32_t> filled;    // sender: bytes of data that are there
  std::uint32_t capacity;          // owner, as it takes it: bytes of data
  Atomic<std::uint64_t> next;      // sender: names the buffer behind this one, 0: not yet
  std::uint32_t drain;             // sender, before it is announced: by which kind of loads (copying::Store)
  std::uint32_t sample;            // sender, before it is announced: 1: the receiver reports what emptying it has cost
  Atomic<std::uint32_t> released;  // who has read it, or holds it: 1: it goes back to its owner
  std::uint32_t stays;             // owner, as it takes it: 1: it goes back as soon as it is read
  std::uint32_t returning;         // sender, before it is announced: 1: the receiver's last message lay in it
  alignas(64) std::byte data[];    // sender, published by filled
};
static_assert(sizeof(CopyBuffer) == 64);

// The last buffer, for messages that are matched when there is no other: one after the other.
inline constexpr std::size_t spare_buffer_bytes = 8192;

struct MessageMailbox {
  // Both in one line: who finds the queue empty touches no other (queue.hpp).
  alignas(line) Atomic<Reference> tail;        // senders, by exchange; the owner, to empty
  Atomic<Reference> head;                      // the sender that finds the queue empty; the owner takes it
  Atomic<std::uint64_t> answered;              // receivers, by exchange; the owner takes all (answers.cpp)
  alignas(line) Atomic<std::uint32_t> asleep;  // owner's threads that sleep; each its own
  waiting::WakeWord wake_word;                 // whoever wakes the owner
  // For peers that are blocked on the owner while it does something else (Mailboxes::wake_blocked): the wake word on
  // which a thread of it sleeps, 0: none. The owner stores it; who rings takes it out.
  alignas(line) Atomic<Reference> elsewhere;
  alignas(line) Cell cell[cells];
  alignas(line) std::byte spare_buffer[spare_buffer_bytes];
};

inline constexpr std::uint32_t not_drained = ~0u;  // instead of the ticks of a sample: the program does not have it yet

struct alignas(line) Ring {
  Atomic<std::uint64_t> read;      // receiver: bytes it has taken
  Atomic<std::uint64_t> sample;    // receiver: samples of copy buffers that it has told << 32 | ticks of the last one
  alignas(line) std::byte data[];  // sender: records, each a multiple of 64 bytes
};

// Where the data of one side lies and how (layout::Data), for the other side.
struct RemoteLayout {
  reach::RemoteBuffer place;  // of its lowest byte
  std::uint64_t address;      // the same in its owner's address space, for ways by calls
  std::int64_t element;       // from there to the first element
  std::uint64_t runs;         // offset of the runs in the owner's segment, 0: dense
  std::uint64_t run_count, size;
  std::int64_t extent, low, high;
};

// How a message moves once it is matched: direct and by_calls: both sides copy blocks; staged: through copy buffers.
enum class State : std::uint32_t { waiting, direct, by_calls, staged, done, cancelled };

struct Request;
struct Transfer {
  // Sender, before the record.
  alignas(line) std::uint64_t bytes;
  Request* own;  // what it is to its sender; nullptr: it has given it up
  RemoteLayout from;
  Atomic<std::uint64_t> first;  // sender, staged, unless the record told it: names the first buffer, 0: not yet
  // Sender: 1 while a thread of it waits for this message. A hint, so nothing pairs with it.
  Atomic<std::uint32_t> attended;
  std::uint32_t listed;  // sender, before the record: 1: it does not look at the state, but into its list of answers
  // Receiver, published by state.
  alignas(line) RemoteLayout to;
  std::uint64_t length;                        // bytes that move: less than `bytes` when the receive is shorter
  std::uint64_t block_bytes;                   // what one claim is worth
  std::uint64_t advised;                       // 1: the next ones of this length may be handed over without asking
  std::uint64_t answered_before;               // in the sender's list, published by MessageMailbox::answered; 0: none
  Atomic<State> state;                         // receiver: how it goes on, once matched
  Atomic<std::uint32_t> front;                 // receiver: blocks it has copied
  Atomic<std::uint32_t> released;              // receiver: it will not look again
  alignas(line) Atomic<std::uint64_t> claims;  // both: blocks claimed from the back << 32 | from the front
  alignas(line) Atomic<std::uint32_t> back;    // sender: blocks it has copied
};

inline constexpr unsigned transfers_at_once = 32;  // that a process allocates, the first with its mailbox

}  // namespace nearfield::messages
