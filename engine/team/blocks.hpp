// What the members of a team share, and who writes which word.
//
// Every member owns one MemberBlock inside its own segment, first touched by itself; the first member's allocation
// is followed by a LeaderBlock. Positions are offsets into segments, never pointers. All counters grow and are never
// reset, so nothing has to be agreed before they are used again.
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
//
// Buffers of the user. A member that exposes its buffers writes two places into exposure[n % 2] and posts; whoever has
// met that tick reads them. Two exposures suffice: nobody meets exposure n + 1 before all have posted it, hence have
// read exposure n, and n + 2 goes where n was.
//
// Work done together (Team::work_together):
//
//   everybody         exposes its buffers, adds one to the gate
//   the last of them  parts = round << 32
//   whoever runs      takes a part (compare-and-swap on parts), does it, adds one to `done`; until none is left
//   everybody         leaves when `done` has reached the sum of all rounds' parts so far
//
// Nobody arrives in round n + 1 before it has left round n, so a word of parts that bears another round is not its own.
//
// Where everybody waits for everybody, small teams look at one line of each member. Crowded teams (more ranks than
// CPUs) meet at the leader's gate: one counter to look at instead of p lines, and only the last to arrive wakes the
// sleepers. Large teams with a CPU for every member meet along a tree (tree.hpp), without a word that several write:
//
//   a member   waits until `gathered` of each child is n, stores its own (the root does not)
//              waits until `released` of its parent is n, stores its own
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/base/settings.hpp"
#include "engine/collectives/call.hpp"
#include "engine/reach/settlement.hpp"
#include "engine/team/shape.hpp"

namespace nearfield::team {

inline constexpr std::size_t line = 128;  // two cache lines: adjacent-line prefetchers pull pairs
inline constexpr unsigned slots = 8, lines = 128;
inline constexpr std::size_t slot_payload = 4096;  // bytes
inline constexpr unsigned buffers = 4;

struct alignas(line) Slot {
  Atomic<std::uint64_t> seq;        // owner; pairs with Team::wait_slot
  std::uint64_t bytes;              // owner, published by seq: length of the payload
  std::byte payload[slot_payload];  // owner, published by seq; the first 48 bytes share the line of seq
};

struct Exposure {
  reach::Place send, recv;
  std::uint64_t note;  // what else the peers must know for their shares; the algorithm's own
};

struct alignas(line) Line {
  Atomic<std::uint64_t> seq;    // owner: sequence number << 8 | bytes of the payload; pairs with Team::wait_line
  std::byte payload[line - 8];  // owner, published by seq
};
inline constexpr std::size_t line_payload = sizeof(Line::payload);

struct MemberBlock {
  alignas(line) Atomic<std::uint64_t> posted;     // owner; pairs with Team::wait_posted
  Atomic<std::uint64_t> staging;                  // owner, published by posted: offset of the staging area
  std::uint64_t place[buffers];                   // owner, published by posted: Team::told_place
  Exposure exposure[2];                           // owner, published by posted
  alignas(line) Atomic<std::uint64_t> consumed;   // owner; pairs with Team::wait_consumed
  Atomic<std::uint64_t> reading[buffers];         // owner: tick << 24 | clock ticks that reading its buffers took
  alignas(line) Atomic<std::uint64_t> slot_done;  // owner; pairs with Team::reserve_slot
  alignas(line) Atomic<std::uint64_t> line_done;  // owner; pairs with Team::reserve_line
  alignas(line) Atomic<std::uint64_t> gathered;   // owner; pairs with Team::meet_along_tree at the parent
  alignas(line) Atomic<std::uint64_t> released;   // owner; pairs with Team::meet_along_tree at the children
  alignas(line) Atomic<std::uint64_t> doing;  // owner: the call it is in (collectives::pack), 0 outside; reports only
  Atomic<std::uint32_t> awaits;               // owner: rank + 1 of the awaited member, `everybody`, 0 awake
  Atomic<std::uint32_t> awaits_what;          // owner, published by awaits: which of that member's words (What)
  Atomic<std::uint64_t> awaits_value;         // owner, published by awaits: and its least value
  Atomic<std::uint32_t> bell;                 // futex word: any member that wakes the owner
  // Owner: 1 when it has mapped all segments; ends the others' attempts to send theirs. For peers that strangers keep
  // from getting letters.
  alignas(line) Atomic<std::uint32_t> segments_complete;  // pairs with swap_segments
  Atomic<std::uint32_t> revoked;                          // owner: 1 once it has revoked the team
  reach::Settlement::Words settling;
  alignas(line) Atomic<std::uint32_t> closed;   // every other member adds one when it has closed the team
  alignas(line) Atomic<std::uint32_t> watched;  // members asleep that await the owner; each its own
  Atomic<std::uint32_t> broken_off;             // owner: 1 once it could not go on in the middle of a call
  Line small[lines];
  Slot slot[slots];
};

inline constexpr std::uint32_t everybody = ~0u;
enum class What : std::uint32_t {
  gate,
  slot,
  slot_done,
  line,
  line_done,
  posted,
  consumed,
  gathered,
  released,
  settling  // nobody rings
};

// Decided by the first member, read by the others after creation.
struct Plan {
  Meeting meeting;                                           // Shape::meeting
  std::uint32_t one_group, group, package;                   // Shape's
  double ranks_per_cpu;                                      // 1 where every member has a CPU of its own
  std::uint32_t check;                                       // compare the calls of all members before each one
  std::uint64_t buffer_bytes;                                // one staging buffer
  Machine machine;                                           // its figures
  Choosing choosing;                                         // NEARFIELD_CHOOSE of the first member
  char algorithm[512];                                       // NEARFIELD_ALGORITHM of the first member
  std::uint8_t tuned[collectives::collective_count][64][2];  // Team::tuned
};

struct LeaderBlock {
  alignas(line) Atomic<std::uint64_t> gate;      // every member adds one per meeting (acq_rel)
  alignas(line) Atomic<std::uint32_t> sleepers;  // members asleep that await everybody; each its own
  Atomic<std::uint32_t> bell;                    // futex word of those who wait for everybody: who completes it
  // Work that any member may do (Team::work_together): round << 32 | next part. The last to arrive begins a round,
  // members take parts by compare-and-swap.
  alignas(line) Atomic<std::uint64_t> parts;
  Atomic<std::uint64_t> verdict;             // round << 2 | Verdict, any member that does a part, before `done`
  alignas(line) Atomic<std::uint64_t> done;  // parts done so far, of all rounds; each member adds its own
  // First member, relaxed: a cell's epoch of calls that lies so far ahead that every member synchronises with the first
  // one before it gets there (no member is an epoch ahead of another), and so loads what has been stored.
  alignas(line) Atomic<std::uint32_t> revisit[collectives::collective_count][64];
  alignas(line) Plan plan;  // first member, before creation is agreed
};

static_assert(Atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(MemberBlock, consumed) == line);  // a member that is met tells all of it in one line

}  // namespace nearfield::team
