// What the members of a window share, and who writes which word. Every member owns one WindowControlBlock inside its
// own segment, followed by a Towards for each member: what that one does to the owner, or the owner to it.
//
// Locks are tickets (lock.hpp). A holder and who waits for it say so in `engaged` before they take a ticket (or call,
// as urgent readers do) and until they have given the lock back, so whoever waits in vain can see which of them has
// died.
//
// Atomicity of accumulates (atomics.cpp) is that of single words, by instructions, until somebody needs more in this
// window: then it is by stripe locks, for good (AtomicityMode).
//
//   an origin, singles                      who needs locks
//   busy = 1                                mode: singles -> switching (compare-and-swap)
//   (no fence)                              a barrier on all processors that run a process of the window
//   mode == singles ?                       waits until each member's `busy` has been 0 once
//     the atomic instruction                mode = locked
//   busy = 0 (release)
//
// After the processors' barrier whoever sets `busy` sees the new mode; who had set it before is waited for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/atomic.hpp"
#include "engine/team/control_block.hpp"
#include "engine/windows/lock.hpp"

namespace nearfield::windows {

using team::line;

// How the atomicity of accumulates is kept, in the first member's words; `switching` and above: by that member.
enum AtomicityMode : std::uint32_t { singles = 0, locked = 1, switching = 2 };

// Bytes of the target's window that one stripe lock guards, and locks per member: stripes come round again.
inline constexpr std::size_t stripe_bytes = 16384;
inline constexpr unsigned stripes = 32;

// What a member sleeps for.
inline constexpr std::uint32_t awake = 0, for_notice = 1, for_lock = 2;
inline constexpr std::uint32_t urgent = 1u << 31;  // beside for_lock: an urgent reader, without a ticket

constexpr int target_of(std::uint32_t what) { return int((what & ~urgent) - for_lock); }  // pre: for a lock

// For reports (CollectiveContext::enter): what a member waits for in a window, above all calls of collectives.
constexpr std::uint64_t doing(std::uint32_t what) { return std::uint64_t{0xff} << 56 | what; }
constexpr bool is_of_window(std::uint64_t doing) { return doing >> 56 == 0xff; }
std::string describe(std::uint64_t doing);

struct Stripe {
  alignas(64) Atomic<std::uint32_t> holder;  // rank + 1 by compare-and-swap, 0 by the holder
};

struct WindowControlBlock {
  alignas(line) Lock lock;  // of the owner's memory: any member
  // Owner: whether it is in an atomic instruction, or how many of its threads are.
  alignas(line) Atomic<std::uint32_t> busy;
  // Owner: what it sleeps for (`awake`, `for_notice`, `for_lock` + target, `urgent`), and the ticket that it waits
  // with.
  alignas(line) Atomic<std::uint32_t> asleep;  // pairs with Window::ring
  Atomic<std::uint32_t> ticket;                // published by asleep
  Atomic<std::uint32_t> wake_word;             // futex word: any member that wakes the owner
  alignas(line) Atomic<std::uint32_t> mode;    // in the first member's: any member
  alignas(line) Stripe stripe[stripes];
};

// Of one member, in another's words.
struct Towards {
  Atomic<std::uint32_t> posted;     // that member: its posts to the owner; pairs with Window::start
  Atomic<std::uint32_t> completed;  // that member: its completes towards the owner; pairs with Window::wait
  Atomic<std::uint32_t> engaged;  // owner: whether it holds that member's lock or waits for it; pairs with inspections
};

constexpr std::size_t words_bytes(int size) { return sizeof(WindowControlBlock) + std::size_t(size) * sizeof(Towards); }

}  // namespace nearfield::windows
