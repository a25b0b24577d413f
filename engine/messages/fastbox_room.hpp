// What a rank's fastboxes may need.
#pragma once
#include <cstdint>
#include <limits>

namespace nearfield::messages {

// Pairs of a member that may have one.
inline constexpr int most_fastboxes = std::numeric_limits<int>::max();

// Of the ring of one pair; a power of two.
constexpr std::uint64_t fastbox_bytes(int members) {
  return members <= 16 ? 128 << 10 : members <= 64 ? 64 << 10 : 32 << 10;
}

}  // namespace nearfield::messages
