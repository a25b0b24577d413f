// The messenger's counts, for statistics. Written under its lock, read by any thread at any time.
#pragma once
#include <cstdint>

namespace nearfield::messages {

struct Counts {
  std::uint64_t cells = 0, fastbox = 0, direct = 0, by_calls = 0, staged = 0;  // messages sent (large ones: received)
  std::uint64_t unexpected = 0, bytes = 0;
  std::uint64_t fastboxes = 0;  // that were made
};

}  // namespace nearfield::messages
