// The header of a process's segment: shared words of a process that belong to no team.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/hang_report/call_post.hpp"
#include "engine/reach/peers.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::team {

struct ProcessHeader : reach::SegmentHeader {
  // Owner, while bodies of its operations are suspended: offset of the futex word that it sleeps on, 0: awake. Members
  // that have done what such a body awaits notify that word (context::Waits::wake).
  alignas(128) Atomic<std::uint64_t> asleep_on;
  waiting::WakeWord progress_thread;  // any process that wakes the owner's progress thread

  // Contexts that this process has closed (messages/closed_contexts.hpp).
  static constexpr std::uint32_t most_closed = 448;
  alignas(128) std::atomic<std::uint32_t> closed;  // owner: number of entries in closed_context
  std::uint64_t closed_context[most_closed];       // owner, published by `closed`
  // Used in the first member's header: every member adds one after its own `closed`.
  std::atomic<std::uint32_t> closed_by_anyone;

  // Calls that the process's threads are in.
  alignas(128) hang_report::CallBoard board;
};
inline constexpr std::size_t header_bytes = 8192;  // reserved for it in every segment
static_assert(sizeof(ProcessHeader) <= header_bytes);

// Returns the header of the segment that begins there.
inline ProcessHeader& header_at(std::byte* segment) { return *reinterpret_cast<ProcessHeader*>(segment); }

}  // namespace nearfield::team
