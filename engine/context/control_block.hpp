// What the members of a team share for one context, and who writes which word. Every member owns one
// ContextControlBlock of each context; the first member also owns what all of them write (ContextGate).
//
// All counters grow and are never reset, so nothing has to be agreed before they are used again.
//
// Small messages: slots. Every small operation has a sequence number `seq`, equal on all members. A member that
// contributes writes the payload into slot[seq % slots] and then stores the slot's `seq` (release); a reader that has
// acquired `seq` may read the payload. In rooted operations every member stores `slot_done = seq` when it is through;
// in operations where everybody waits for everybody, the arrival for seq says that seq - 1 has been read.
//
// Smallest messages of rooted operations: lines, the same in short and deep. A root that does not wait for anybody
// may be many operations ahead; it looks at its readers once in half a ring (`line_done`).
//
// Large messages: rounds of copy buffers. Every round has a `tick`, equal on all members. A member fills a buffer, says
// in place[tick % buffers] where it lies and stores `posted = tick` (release); a reader stores `consumed = tick` when
// it has read all buffers of that tick (rooted operations: every tick, others: the last one). staging.cpp draws it.
// Members must be in one call of one length, which programs get wrong: the place bears a sum of the length that its
// member has, and what that is stands in lengths[tick % buffers], where nobody looks who finds the sum as expected.
//
// Buffers of the user. A member that exposes its buffers writes two places into exposure[n % 2] and posts; whoever has
// met that tick reads them. Two exposures suffice: nobody meets exposure n + 1 before all have posted it, hence have
// read exposure n, and n + 2 goes where n was.
//
// Work done together (CollectiveContext::work_together):
//
//   everybody         exposes its buffers, adds one to the gate
//   the last of them  parts = round << 32
//   whoever runs      takes a part (compare-and-swap on parts), does it, adds one to `done`; until none is left
//   everybody         leaves when `done` has reached the sum of all rounds' parts so far
//
// Nobody arrives in round n + 1 before it has left round n, so a word of parts that bears another round is not its own.
//
// Where everybody waits for everybody, small teams look at one line of each member. Oversubscribed teams (more ranks
// than CPUs) meet at the gate: one counter to look at instead of p lines, and only the last to arrive wakes the
// sleepers. Large teams with a CPU for every member meet along a tree (team/tree.hpp), without a word that several
// write:
//
//   a member   waits until `gathered` of each child is n, stores its own (the root does not)
//              waits until `released` of its parent is n, stores its own
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/reach/attach_agreement.hpp"
#include "engine/team/control_block.hpp"

namespace nearfield::context {

using team::line;

inline constexpr unsigned slots = 8, lines = 128;
inline constexpr std::size_t slot_payload = 4096;  // bytes
inline constexpr unsigned buffers = 4;
// What a member has of its own for rounds, from the first ones on that need it.
constexpr std::size_t staging_bytes(std::size_t buffer_bytes) { return buffers * buffer_bytes; }

struct alignas(line) Slot {
  Atomic<std::uint64_t> seq;        // owner; pairs with CollectiveContext::wait_slot
  std::uint64_t bytes;              // owner, published by seq: length of the payload
  std::byte payload[slot_payload];  // owner, published by seq; the first 48 bytes share the line of seq
};

struct Exposure {
  reach::RemoteBuffer send, recv;
  std::uint64_t note;  // what else the peers must know for their shares; the algorithm's own
};

struct alignas(line) Line {
  Atomic<std::uint64_t>
      seq;  // owner: sequence number << 8 | bytes of the payload; pairs with CollectiveContext::wait_line
  std::byte payload[line - 8];  // owner, published by seq
};
inline constexpr std::size_t line_payload = sizeof(Line::payload);

struct ContextControlBlock {
  alignas(line) Atomic<std::uint64_t> posted;     // owner; pairs with CollectiveContext::wait_posted
  Atomic<std::uint64_t> staging;                  // owner, published by posted: offset of the staging area
  std::uint64_t place[buffers];                   // owner, published by posted: CollectiveContext::place_of
  Exposure exposure[2];                           // owner, published by posted
  alignas(line) Atomic<std::uint64_t> consumed;   // owner; pairs with CollectiveContext::wait_consumed
  Atomic<std::uint64_t> reading[buffers];         // owner: tick << 24 | clock ticks that reading its buffers took
  alignas(line) Atomic<std::uint64_t> slot_done;  // owner; pairs with CollectiveContext::reserve_slot
  alignas(line) Atomic<std::uint64_t> line_done;  // owner; pairs with CollectiveContext::reserve_line
  alignas(line) Atomic<std::uint64_t> gathered;   // owner; pairs with CollectiveContext::meet_along_tree at the parent
  alignas(line) Atomic<std::uint64_t> released;  // owner; pairs with CollectiveContext::meet_along_tree at the children
  // Owner: the call it is in (collectives::pack), 0 outside; reports only.
  alignas(line) Atomic<std::uint64_t> doing;
  Atomic<std::uint64_t>
      calls;  // owner: collective calls that it has begun; pairs with CollectiveContext::look_for_other_calls
  // Owner, published by ProcessHeader::asleep_on: what the body of a further context awaits, as
  // MemberControlBlock::awaits.
  Atomic<std::uint32_t> awaits, awaits_what;
  Atomic<std::uint64_t> awaits_value;
  std::uint64_t lengths[buffers];  // owner, published by posted: bytes of its vector or block in that tick's operation
  reach::AttachAgreement::ControlBlock settling;
  Line small[lines];
  Slot slot[slots];
};
static_assert(offsetof(ContextControlBlock, consumed) == line);  // a member that is met tells all of it in one line

struct ContextGate {
  alignas(line) Atomic<std::uint64_t> gate;      // every member adds one per meeting (acq_rel)
  alignas(line) Atomic<std::uint32_t> sleepers;  // members asleep that await everybody; each its own
  Atomic<std::uint32_t> wake_word;               // futex word of those who wait for everybody: who completes it
  // Work that any member may do (CollectiveContext::work_together): round << 32 | next part. The last to arrive begins
  // a round, members take parts by compare-and-swap.
  alignas(line) Atomic<std::uint64_t> parts;
  Atomic<std::uint64_t> verdict;             // round << 2 | Verdict, any member that does a part, before `done`
  alignas(line) Atomic<std::uint64_t> done;  // parts done so far, of all rounds; each member adds its own
};

}  // namespace nearfield::context
