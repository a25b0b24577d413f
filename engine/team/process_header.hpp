// The header of a process's segment: what each layer shares of a process, whatever teams it is in.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/hang_report/call_post.hpp"
#include "engine/reach/peers.hpp"

namespace nearfield::team {

struct ProcessHeader : reach::SegmentHeader {
  // Owner, while bodies of its operations are suspended: offset of the futex word that it sleeps on, 0: awake. Whoever
  // has done what such a body awaits rings there (CollectiveContext::wake_suspended).
  alignas(128) std::atomic<std::uint64_t> asleep_on;

  // Contexts that processes have closed (messages/closed_contexts.hpp).
  static constexpr std::uint32_t most_closed = 448;
  alignas(128) std::atomic<std::uint32_t> closed;  // owner: how many of the next
  std::uint64_t closed_context[most_closed];       // owner, published by `closed`
  std::atomic<std::uint32_t> closed_by_anyone;     // in the first member's: everybody adds one after its own `closed`

  // The calls that it is in.
  alignas(128) hang_report::CallBoard board;
};
inline constexpr std::size_t header_bytes = 8192;  // that are reserved for it
static_assert(sizeof(ProcessHeader) <= header_bytes);

// Of the process whose segment begins there.
inline ProcessHeader& header_at(std::byte* segment) { return *reinterpret_cast<ProcessHeader*>(segment); }

}  // namespace nearfield::team
