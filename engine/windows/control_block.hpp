// Shared words of a window, and their writers. Every member owns one WindowControlBlock in its segment, followed by a
// Towards for each member, with the words that concern that member and the owner.
//
// Locks are tickets (lock.hpp). A member sets `engaged` before it takes a ticket (an urgent reader: before Lock::call),
// and clears it once it has released the lock. So a member that waits in vain can see which holder or waiter has died.
//
// Accumulates (atomics.cpp) are atomic by instructions until an operation in this window needs more; from then on they
// are atomic by stripe locks (AtomicityMode).
//
//   an origin, singles                      a member that needs locks
//   busy = 1                                mode: singles -> switching (compare-and-swap)
//   (no fence)                              a barrier on all processors that run a process of the window
//   mode == singles ?                       waits until each member's `busy` has been 0 once
//     the atomic instruction                mode = locked
//   busy = 0 (release)
//
// A member that sets `busy` after the processors' barrier sees the new mode; others are waited for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/atomic.hpp"
#include "engine/team/control_block.hpp"
#include "engine/waiting/wake_word.hpp"
#include "engine/windows/lock.hpp"

namespace nearfield::windows {

using team::line;

// Values of `mode` in the first member's block. `switching` + m: member m is changing it from singles to locked.
enum AtomicityMode : std::uint32_t { singles = 0, locked = 1, switching = 2 };

// Bytes of the target's window that one stripe lock guards, and number of stripe locks per member. Stripe n has the
// lock n % stripes.
inline constexpr std::size_t stripe_bytes = 16384;
inline constexpr unsigned stripes = 32;

// Values of WindowControlBlock::asleep.
inline constexpr std::uint32_t awake = 0, for_notice = 1, for_lock = 2;
inline constexpr std::uint32_t urgent = 1u << 31;  // added to for_lock: an urgent reader, without a ticket

constexpr int target_of(std::uint32_t what) { return int((what & ~urgent) - for_lock); }  // pre: for a lock

// For hang reports (CallLog::enter): codes of waits in a window, above those of collective calls.
constexpr std::uint64_t doing(std::uint32_t what) { return std::uint64_t{0xff} << 56 | what; }
constexpr bool is_of_window(std::uint64_t doing) { return doing >> 56 == 0xff; }
std::string describe(std::uint64_t doing);

struct Stripe {
  alignas(64) Atomic<std::uint32_t> holder;  // rank + 1 by compare-and-swap, 0 by the holder
};

struct WindowControlBlock {
  alignas(line) Lock lock;  // of the owner's memory: any member
  // Owner: the number of its threads that are in an atomic instruction.
  alignas(line) Atomic<std::uint32_t> busy;
  // Owner: `awake`, or its reason to sleep (`for_notice`, `for_lock` + target, `urgent`), and the ticket it waits with.
  alignas(line) Atomic<std::uint32_t> asleep;
  Atomic<std::uint32_t> ticket;              // published by asleep
  waiting::WakeWord wake_word;               // any member, to wake the owner
  alignas(line) Atomic<std::uint32_t> mode;  // any member; used in the first member's block
  alignas(line) Stripe stripe[stripes];
};

// Words that concern one member, in the block of another, the owner.
struct Towards {
  Atomic<std::uint32_t> posted;     // that member: number of its posts to the owner
  Atomic<std::uint32_t> completed;  // that member: number of its completes towards the owner
  Atomic<std::uint32_t> engaged;    // owner: 1 while it holds that member's lock or waits for it
};

constexpr std::size_t words_bytes(int size) { return sizeof(WindowControlBlock) + std::size_t(size) * sizeof(Towards); }

}  // namespace nearfield::windows
