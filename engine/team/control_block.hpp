// Shared words of a team's members, and their writers. Those of one context are in engine/context/control_block.hpp.
//
// Every member owns a MemberControlBlock in its segment and touches it first; the first member's allocation also holds
// the Plan (creation/create.cpp). Positions are offsets into segments, never pointers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/settings/settings.hpp"
#include "engine/team/shape.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::team {

inline constexpr std::size_t line = 128;  // two cache lines: adjacent-line prefetchers pull pairs

struct MemberControlBlock {
  // For a member that sleeps in a wait of the first context.
  alignas(line) Atomic<std::uint32_t> awaits;  // owner: rank + 1 of the awaited member, `everybody`, 0 awake
  Atomic<std::uint32_t> awaits_what;   // owner, published by awaits: the word of that member it waits for (What)
  Atomic<std::uint64_t> awaits_value;  // owner, published by awaits: the least value of that word
  waiting::WakeWord wake_word;         // any member that wakes the owner
  // Owner: 1 when it has mapped all segments, so that the others stop trying to send theirs, which fails while
  // strangers keep its mailbox full.
  alignas(line) Atomic<std::uint32_t> segments_complete;
  Atomic<std::uint32_t> revoked;  // owner: 1 once it has revoked the team
  // Owner: offset of its control blocks of further contexts; 0: not yet.
  Atomic<std::uint64_t> contexts;
  alignas(line) Atomic<std::uint32_t> closed;   // every other member adds one when it has closed the team
  alignas(line) Atomic<std::uint32_t> watched;  // number of members asleep that await the owner: each counts itself
  Atomic<std::uint32_t> broken_off;             // owner: a Break, once it has failed in the middle of a call
  char why[232];                                // owner, published by broken_off: a text, which may be cut
};

enum Break : std::uint32_t { unbroken, by_failure, by_lengths };
inline constexpr std::uint32_t everybody = ~0u;
// Words that a member may await; `unrung`: a flag whose writer may wake nobody.
enum class What : std::uint32_t { gate, record, posted, consumed, gathered, released, unrung };

// Written by the first member before the members agree on the team (creation/create.cpp), then read by the others.
struct Plan {
  Meeting meeting;                          // Shape::meeting
  std::uint32_t one_group, group, package;  // Shape's
  double ranks_per_cpu;                     // 1 where every member has a CPU of its own
  std::uint32_t check;                      // 1: before each call the calls of all members are compared
  std::uint32_t deferred;      // of the world's team: number of calls the host serves before a communicator gets a team
  std::uint64_t buffer_bytes;  // of one copy buffer
  Machine machine;             // its figures
  PairStates states;           // Shape::states
};

static_assert(Atomic<std::uint64_t>::is_always_lock_free);

}  // namespace nearfield::team
