// Copy kernels.
//
//   temporal    the lines stay in the cache, for data that will be read soon
//   claiming    as temporal, for lines that another core holds: it takes whole lines over without fetching them first
//               (rep movsb, whose stores are ordered before later ones like any others). 64 KiB through a copy buffer
//               took 0.42 of the time of vector stores on one CPU with the cores far apart, three times as much on
//               another
//   vector      as temporal, always by vector loads and stores, whatever the C library would choose
//   streaming   non-temporal stores: out of the cache a copy costs two memory transfers per byte instead of three
//   hybrid      a part temporal, a part streaming (Stores)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nearfield::copying {

enum class Store : std::uint8_t { temporal, claiming, streaming, vector };

void copy_large(void* to, const void* from, std::size_t bytes, Store store) noexcept;

using Vector [[gnu::vector_size(16)]] = std::uint64_t;
struct TwoVectors {
  Vector first, second;
};

// pre: sizeof(Part) <= bytes <= 2 * sizeof(Part)
template <class Part>
[[gnu::always_inline]] inline void copy_both_ends(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  Part first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

// Non-overlapping. Streaming writes whole aligned lines past the cache, the rest temporally, and fences before it
// returns, so that a release store afterwards publishes all of it.
inline void copy(void* to, const void* from, std::size_t bytes, Store store = Store::temporal) noexcept {
  auto* d = static_cast<std::byte*>(to);
  const auto* s = static_cast<const std::byte*>(from);
  // Overlapping words and vectors for the shortest copies, which are most calls.
  if (bytes <= 16) {
    if (bytes >= 8) {
      copy_both_ends<std::uint64_t>(d, s, bytes);
    } else if (bytes >= 4) {
      copy_both_ends<std::uint32_t>(d, s, bytes);
    } else {
      for (std::size_t i = 0; i < bytes; ++i) d[i] = s[i];
    }
    return;
  }
  if (bytes <= 32) return copy_both_ends<Vector>(d, s, bytes);
  if (bytes <= 64) return copy_both_ends<TwoVectors>(d, s, bytes);
  copy_large(to, from, bytes, store);
}

// Mix of stores: after the first `temporal` bytes, `streamed` of each eight lines are streamed.
struct Stores {
  std::size_t temporal = ~std::size_t{0};
  unsigned streamed = 8;
};
inline constexpr Stores all_temporal{}, all_streaming{0, 8};

// Shorter copies are not streamed: too few of their lines are whole.
inline constexpr std::size_t least_streamed = 256;

// The parts of a hybrid copy: a temporal head, `lines` whole aligned lines of the target, `streamed` of each eight of
// them past the cache, and a temporal rest.
struct Parts {
  std::size_t head, lines;
  unsigned streamed;
};
inline Parts parts_of(std::uintptr_t to, std::size_t bytes, Stores stores) noexcept {
  const std::size_t prefix = stores.temporal < bytes ? stores.temporal : bytes;
  const std::size_t head = prefix + (64 - (to + prefix) % 64) % 64;
  if (bytes < least_streamed || head + 64 > bytes) return {bytes, 0, 0};
  return {head, (bytes - head) / 64, stores.streamed};
}

// As copy(), without a fence: streamed bytes may be published only after fence(). Unaligned heads and tails, and lines
// that are not whole, are temporal.
void copy_hybrid(void* to, const void* from, std::size_t bytes, Stores stores) noexcept;
void fence() noexcept;

// Returns streaming if `working_set` bytes do not fit `cache` bytes.
inline Store choose_store(std::size_t working_set, std::size_t cache) noexcept {
  return working_set > cache ? Store::streaming : Store::temporal;
}

// Returns the number of lines that this process has streamed so far.
std::uint64_t streamed_lines() noexcept;

}  // namespace nearfield::copying
