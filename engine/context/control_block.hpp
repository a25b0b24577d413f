// Shared words of one context, and their writers. Every member owns one ContextControlBlock of each context; the first
// member also owns the words that all of them write (ContextGate).
//
// All counters grow and are never reset, so members need not agree before they reuse them.
//
// Small messages: slots. Every small operation has a sequence number `seq`, equal on all members.
//
//   writer of s                                         reader of s
//   waits until all readers are done with s - slots
//   slot[s % slots]: payload, then seq = s (release)    waits until seq >= s (acquire), reads the payload
//                                                       is done; rooted operation: slot_done = s (release)
//                                                       all wait for all: it publishes s + 1 (release)
//
// Smallest messages of rooted operations: lines, a ring of the same protocol with shorter payload and more entries. A
// root may be many operations ahead; it reads its readers' `line_done` once in half a ring.
//
// Large messages: rounds of copy buffers. Every round has a `tick`, equal on all members. A member fills a buffer,
// writes its position to place[tick % buffers] and stores `posted = tick` (release); a reader stores `consumed = tick`
// when it has read all buffers of that tick (rooted operations: every tick, others: the last one). staging.cpp draws
// it. Wrong programs call with different lengths: place holds a hash of the member's length and of the tick, and a
// reader that finds another one than its own reads the length from lengths[tick % buffers].
//
// Buffers of the user. In exchange n a member writes two remote buffers to exchange[n % 2] and posts; members read
// them after the barrier of that tick. Two entries suffice: all have read those of exchange n when they post n + 1, and
// n + 2, which reuses the words of n, comes after the barrier of n + 1.
//
// Work done together (CollectiveContext::work_together):
//
//   all members       publish their buffers, add one to the gate
//   the last of them  parts = round << 32 | their number << 16
//   running members   take a part (compare-and-swap on parts), do it, add one to `done`; until none is left
//   all members       leave when `done` has reached the sum of all rounds' parts so far
//
// No member arrives in round n + 1 before it has left round n; it ignores `parts` with another round's number.
//
// Barriers. Small teams read one line of each member. Oversubscribed teams (more ranks than CPUs) use the gate: one
// counter instead of p lines, and only the last to arrive wakes the sleepers. Large teams with a CPU for every member
// meet along a tree (team/tree.hpp), in which every word has one writer:
//
//   a member   waits until `gathered` of each child is n, stores its own (the root does not)
//              waits until `released` of its parent is n, stores its own
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/reach/attach_agreement.hpp"
#include "engine/team/control_block.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::context {

using team::line;

inline constexpr unsigned slots = 16, lines = 128;
inline constexpr std::size_t slot_payload = 4096;  // bytes
inline constexpr unsigned buffers = 4;
inline constexpr std::uint64_t no_staging = 1;
// Where a member should have published a length, and has not: it runs another row.
inline constexpr std::size_t no_length = ~std::size_t{0};
// Of a member's last calls; more than it can be ahead of those that wait for it, by slots, lines and buffers together.
inline constexpr unsigned calls_known = 256;
// Bytes of a member's own buffers for rounds, allocated at the team's first rounds.
constexpr std::size_t staging_bytes(std::size_t buffer_bytes) { return buffers * buffer_bytes; }

struct alignas(line) Slot {
  Atomic<std::uint64_t> seq;        // owner
  std::uint64_t bytes;              // owner, published by seq: length of the payload
  std::byte payload[slot_payload];  // owner, published by seq; the first 48 bytes share the line of seq
};

struct BufferExchange {
  reach::RemoteBuffer send, recv;
  std::uint64_t note;  // number of the exchange << 48 | further information for peers, defined by the algorithm
};

struct alignas(line) Line {
  Atomic<std::uint64_t> seq;    // owner: sequence number << 8 | bytes of the payload
  std::byte payload[line - 8];  // owner, published by seq
};
inline constexpr std::size_t line_payload = sizeof(Line::payload);

struct ContextControlBlock {
  alignas(line) Atomic<std::uint64_t> posted;  // owner
  Atomic<std::uint64_t> staging;               // owner, published by posted: offset of the staging area, or no_staging
  std::uint64_t place[buffers];                // owner, published by posted: CollectiveContext::place_of
  BufferExchange exchange[2];                  // owner, published by posted
  alignas(line) Atomic<std::uint64_t> consumed;   // owner
  Atomic<std::uint64_t> reading[buffers];         // owner: tick << 24 | clock ticks that reading its buffers took
  alignas(line) Atomic<std::uint64_t> slot_done;  // owner
  alignas(line) Atomic<std::uint64_t> line_done;  // owner
  alignas(line) Atomic<std::uint64_t> gathered;   // owner
  alignas(line) Atomic<std::uint64_t> released;   // owner
  // Owner: its call (collectives::pack), 0: none; for reports only.
  alignas(line) Atomic<std::uint64_t> doing;
  Atomic<std::uint64_t> calls;                // owner: number of collective calls that it has begun
  Atomic<std::uint64_t> called[calls_known];  // owner, published by calls: call n, as `doing`, at n % calls_known
  // Owner, published by ProcessHeader::asleep_on: the word that its suspended body awaits, as in
  // MemberControlBlock::awaits.
  Atomic<std::uint32_t> awaits, awaits_what;
  Atomic<std::uint64_t> awaits_value;
  std::uint64_t lengths[buffers];  // owner, published by posted: bytes of its vector or block in that tick's operation
  reach::AttachAgreement::ControlBlock settling;
  Line small[lines];
  Slot slot[slots];
};
static_assert(offsetof(ContextControlBlock, consumed) == line);  // a reader at a barrier finds all of these in one line

struct ContextGate {
  alignas(line) Atomic<std::uint64_t> gate;      // every member adds one per barrier (acq_rel)
  alignas(line) Atomic<std::uint32_t> sleepers;  // number of members asleep that await all: each counts itself
  waiting::WakeWord wake_word;                   // of members that wait for all: the member that completes the barrier
  // round << 32 | number of parts << 16 | next part (CollectiveContext::work_together). The last member to arrive
  // begins a round, and its number of parts counts; all take parts by compare-and-swap.
  alignas(line) Atomic<std::uint64_t> parts;
  Atomic<std::uint64_t> verdict;             // round << 2 | Verdict, any member that takes a part, before `done`
  alignas(line) Atomic<std::uint64_t> done;  // parts done so far in all rounds; each member adds its own
};

}  // namespace nearfield::context
