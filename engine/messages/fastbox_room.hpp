// Sizes of fastboxes: all that one rank makes have 4 MiB together at most, however many members there are.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace nearfield::messages {

inline constexpr std::uint64_t all_fastboxes = 4 << 20, least_fastbox = 8 << 10;  // bytes
// Number of fastboxes that a member may make; further pairs stay with the queue.
inline constexpr int most_fastboxes = int(all_fastboxes / least_fastbox);

// Returns the bytes of one pair's ring, a power of two.
constexpr std::uint64_t fastbox_bytes(int members) {
  constexpr std::uint64_t of_few = 128 << 10, most = 64 << 10;
  const std::uint64_t share = all_fastboxes / std::bit_ceil(std::uint64_t(members));
  return members <= 16 ? of_few : std::clamp(share, least_fastbox, most);
}

}  // namespace nearfield::messages
