// What two processes share to pass messages, and who writes which word.
//
// Every process owns one MessageMailbox in its segment: a receive queue and its wake word. Messages travel as records:
// an envelope and up to eager_bytes of payload, or the place of a larger message (a Transfer).
//
//   queue     The first records of a pair. Each goes into a cell of its sender, which appends the cell to the queue of
//             the receiver (queue.hpp): many writers, one reader. The sender uses the cell again once the receiver has
//             read it.
//   fastbox   Then the sender makes a ring for the pair and announces it by a last cell. All later records of the pair
//             go through the ring (fastbox.hpp): one writer, one reader, header and payload in the same lines. The
//             receiver learns of the ring behind everything that came before it, so messages never overtake.
//   rendezvous
//             Longer messages are announced by a record that tells their length and, where some of it lies in copy
//             buffers already, the first of these (copy_chains.hpp): the receiver reads while the sender writes. A
//             message that does not fit one copy buffer, or whose sender wants to know when it is matched, has a
//             Transfer as well, by which the receiver says how it goes on (transfers.hpp). Where many of one sender
//             are unmatched, receivers list those that they have matched (answers.cpp).
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

// The wildcard for sources and tags.
inline constexpr std::int32_t any = -0x7fffffff;

struct Envelope {
  std::uint64_t context;  // of the communicator
  std::int32_t source;    // rank in it
  std::int32_t tag;
  bool operator==(const Envelope&) const = default;
};

// eager: the payload is the message. rendezvous: it is a Note, behind which the message may follow. withdraw: it names
// the Transfer of a message that the sender asks to cancel. fastbox: it is the offset of a ring and its capacity. skip:
// the next record is at the beginning of the ring.
enum class Kind : std::uint32_t { none, eager, rendezvous, withdraw, fastbox, skip };

struct alignas(64) Record {
  // Writer: number << 32 | kind << 28 | marks | bytes of payload. The n-th record of a ring has the number n. Until it
  // is there, the word in its place has another number (fastbox.hpp).
  Atomic<std::uint64_t> word;
  Envelope envelope;     // writer, published by word
  std::byte beside[40];  // writer, published by word: begin of the payload, if it fits (place_of_payload)
};
inline constexpr std::size_t record_header = 24, room_beside = 64 - record_header;
static_assert(offsetof(Record, beside) == record_header && sizeof(Record) == 64);

constexpr std::uint64_t record_word(Kind kind, std::size_t bytes, std::uint32_t number = 0) {
  return std::uint64_t(number) << 32 | std::uint64_t(kind) << 28 | bytes;
}
constexpr std::uint32_t number_of(std::uint64_t word) { return std::uint32_t(word >> 32); }
constexpr Kind kind_of(std::uint64_t word) { return Kind(word >> 28 & 0xf); }
constexpr std::size_t bytes_of(std::uint64_t word) { return word & 0x3ffffff; }
// A mark in a word (publication.hpp): while the reader waits for the next record it prefetches as many lines as this
// one has.
inline constexpr std::uint64_t ahead_of_next = 1 << 26;
// Bytes that it prefetches at most: lines that the writer has not filled yet are fetched in vain.
inline constexpr std::uint64_t most_ahead = 192;

// Returns where the payload begins, in bytes from the record. If the bytes that fill no whole line fit beside the
// envelope, they lie there and the payload ends with a line; otherwise it begins with the second line. So it takes no
// more lines than one that begins right behind the envelope.
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

// The sender of a message names a copy buffer by its offset in the segment of the sender. With this bit it is the
// offset in the segment of the receiver, who owns that buffer (held_buffers.hpp).
inline constexpr std::uint64_t of_receiver = 1;

// Announces a message that its record does not hold, or whose sender wants to know when it is matched.
struct Note {
  std::uint64_t transfer;  // offset of its Transfer; 0: there is none
  std::uint64_t bytes;     // of the message
  std::uint64_t first;     // names the first copy buffer; 0: none yet
};

// A message as its record announces it.
struct Arrived {
  int member;
  Envelope envelope;
  Note note;                 // of an eager message: only its bytes
  const std::byte* payload;  // data of the message in the record, behind the note
  std::uint64_t bytes;       // of the payload
  bool carried() const { return bytes == note.bytes && !note.first; }
};

// A message has one copy buffer, or a chain of them. The process in whose segment a buffer lies owns it, and takes it
// for a message. The receiver reads it and may fill it with its own next message to that sender, and so on, until one
// of the two releases it. So either process of a pair may be the "sender" below.
struct alignas(64) CopyBuffer {
  Atomic<std::uint32_t> filled;    // sender: bytes of data that are there
  std::uint32_t capacity;          // owner, when it takes it: bytes of `data`
  Atomic<std::uint64_t> next;      // sender: names the buffer behind this one, 0: not yet
  std::uint32_t drain;             // sender, before it is announced: kind of loads that empties it (copying::Store)
  std::uint32_t sample;            // sender, before it is announced: 1: the receiver reports the ticks of emptying it
  Atomic<std::uint32_t> released;  // who has read it last, or a sender that recalls it: 1: its owner may take it again
  std::uint32_t stays;             // owner, when it takes it: 1: who has read it releases it at once
  std::uint32_t returning;         // sender, when it takes it: 1: it had held it (held_buffers.hpp)
  alignas(64) std::byte data[];    // sender, published by filled
};
static_assert(sizeof(CopyBuffer) == 64);

// The spare buffer serves matched messages, one at a time, when no other buffer is free.
inline constexpr std::size_t spare_buffer_bytes = 8192;

struct MessageMailbox {
  // tail and head lie in one line: a sender that finds the queue empty touches no other (queue.hpp).
  alignas(line) Atomic<Reference> tail;        // senders, by exchange; the owner, when it empties the queue
  Atomic<Reference> head;                      // the sender that finds the queue empty; the owner, when it takes it
  Atomic<std::uint64_t> answered;              // receivers, by compare-and-swap; the owner takes all (answers.cpp)
  alignas(line) Atomic<std::uint32_t> asleep;  // number of the owner's threads that sleep; each counts itself
  waiting::WakeWord wake_word;                 // any process that wakes the owner
  // For peers that are blocked on the owner while it does something else (Mailboxes::wake_blocked): the wake word on
  // which a thread of the owner sleeps, 0: none. The owner stores it; a peer that rings that word stores 0.
  alignas(line) Atomic<Reference> elsewhere;
  alignas(line) Cell cell[cells];
  alignas(line) std::byte spare_buffer[spare_buffer_bytes];
};

inline constexpr std::uint32_t not_drained = ~0u;  // in place of a sample's ticks: the message was copied aside

struct alignas(line) Ring {
  Atomic<std::uint64_t> read;      // receiver: bytes it has taken
  Atomic<std::uint64_t> sample;    // receiver: number of samples that it has reported << 32 | ticks of the last
  alignas(line) std::byte data[];  // sender: records, each a multiple of 64 bytes
};

// Place and layout (layout::Data) of one side's data, for the other side.
struct RemoteLayout {
  reach::RemoteBuffer place;  // of the lowest byte of the data
  std::uint64_t address;      // address of that byte in its owner's address space, for CMA
  std::int64_t element;       // bytes from there to the first element
  std::uint64_t runs;         // offset of the list of runs in the owner's segment; 0: dense
  std::uint64_t run_count, size;
  std::int64_t extent, low, high;
};

// The answer of a receiver. waiting: none yet. direct, by_calls: both sides copy blocks, by loads and stores or by CMA.
// staged: the message goes through copy buffers. done: the record carried it. cancelled: it was withdrawn.
enum class State : std::uint32_t { waiting, direct, by_calls, staged, done, cancelled };

struct Request;
struct Transfer {
  // Sender, before the record.
  alignas(line) std::uint64_t bytes;
  Request* own;  // the sender's request; nullptr: it has been abandoned
  RemoteLayout from;
  Atomic<std::uint64_t> first;  // sender, if staged and the record names none: the first buffer; 0: not yet
  // Sender: 1 once a thread of it waits for this message. A hint, so nothing pairs with it.
  Atomic<std::uint32_t> attended;
  std::uint32_t listed;  // sender, before the record: 1: it reads its list of answers instead of `state`
  // Receiver, published by state.
  alignas(line) RemoteLayout to;
  std::uint64_t length;            // bytes that move: less than `bytes` when the receive is shorter
  std::uint64_t block_bytes;       // bytes of each block but the last
  std::uint64_t advised;           // 1: later messages of this length may go through copy buffers without asking
  std::uint64_t answered_before;   // next in the list `answered` of the sender's mailbox, published by it; 0: none
  Atomic<State> state;             // receiver: how it goes on, once matched
  Atomic<std::uint32_t> front;     // receiver: blocks it has copied
  Atomic<std::uint32_t> released;  // receiver: 1: it does not access the Transfer any more
  alignas(line) Atomic<std::uint64_t> claims;  // both: blocks claimed from the back << 32 | from the front
  alignas(line) Atomic<std::uint32_t> back;    // sender: blocks it has copied
};

inline constexpr unsigned transfers_at_once = 32;  // number that is allocated at a time, at first with the mailbox

}  // namespace nearfield::messages
