// What the members of a team share whatever they are doing, and who writes which word. What belongs to one context is
// in engine/context/control_block.hpp.
//
// Every member owns one MemberBlock inside its own segment, first touched by itself; the first member's allocation
// is followed by a LeaderBlock. Positions are offsets into segments, never pointers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/settings/settings.hpp"
#include "engine/team/shape.hpp"

namespace nearfield::team {

inline constexpr std::size_t line = 128;  // two cache lines: adjacent-line prefetchers pull pairs

struct MemberControlBlock {
  // Of whoever sleeps in a wait of the first context.
  alignas(line) Atomic<std::uint32_t> awaits;  // owner: rank + 1 of the awaited member, `everybody`, 0 awake
  Atomic<std::uint32_t> awaits_what;           // owner, published by awaits: which of that member's words (What)
  Atomic<std::uint64_t> awaits_value;          // owner, published by awaits: and its least value
  Atomic<std::uint32_t> wake_word;             // futex word: any member that wakes the owner
  // Owner: 1 when it has mapped all segments; ends the others' attempts to send theirs. For peers that strangers keep
  // from getting letters.
  alignas(line) Atomic<std::uint32_t> segments_complete;  // pairs with swap_segments
  Atomic<std::uint32_t> revoked;                          // owner: 1 once it has revoked the team
  // Owner: offset of its words of further contexts, 0: not yet, `no_contexts`: never; pairs with ContextPool::join.
  Atomic<std::uint64_t> contexts;
  alignas(line) Atomic<std::uint32_t> closed;   // every other member adds one when it has closed the team
  alignas(line) Atomic<std::uint32_t> watched;  // members asleep that await the owner; each its own
  Atomic<std::uint32_t> broken_off;             // owner: 1 once it could not go on in the middle of a call
};

inline constexpr std::uint64_t no_contexts = 1;
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
  unrung
};

// Decided by the first member, read by the others after creation.
struct Plan {
  Meeting meeting;                          // Shape::meeting
  std::uint32_t one_group, group, package;  // Shape's
  double ranks_per_cpu;                     // 1 where every member has a CPU of its own
  std::uint32_t check;                      // compare the calls of all members before each one
  std::uint32_t young;                      // of the world: calls by the host before a communicator gets a team
  std::uint64_t buffer_bytes;               // one staging buffer
  Machine machine;                          // its figures
};

static_assert(Atomic<std::uint64_t>::is_always_lock_free);

}  // namespace nearfield::team
