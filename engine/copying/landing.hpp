// Kinds of stores for one copy to or from another process's memory, found by the time of the copy (tuning/samples.hpp).
// The time in which the owner reads the data afterwards is unknown, so streaming stores are taken only if they are
// clearly faster.
#pragma once
#include "engine/copying/copy.hpp"
#include "engine/tuning/samples.hpp"

namespace nearfield::copying {

// Shorter copies are not tried: reading the clock would take a noticeable part of them.
inline constexpr std::size_t least_landed = 4096;
inline constexpr std::array<Store, 3> put_stores{Store::temporal, Store::claiming, Store::streaming};
// Data that we get will be read soon, so none is streaming.
inline constexpr std::array<Store, 3> get_stores{Store::temporal, Store::claiming, Store::vector};

struct GettingRows {
  static constexpr std::size_t family = 0;
  static constexpr std::size_t kinds = 3;
  static constexpr unsigned first = 12;  // up to 4 KiB, twice that, and so on; more than 2 MiB
  static constexpr std::size_t count = 11, in_own_buffers = 0;
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) { return tuning::clearly_better; }
  // Timing a long copy costs nothing, and noticing a change late would.
  static constexpr unsigned watch_every(std::size_t group) {
    constexpr std::size_t long_ones = 5;  // more than 64 KiB
    return group < long_ones ? tuning::samples_of_best : 2;
  }
};

struct PuttingRows : GettingRows {
  static constexpr std::size_t family = 1;
  static constexpr bool streams(std::size_t kind) { return put_stores[kind] == Store::streaming; }
  // Streamed data are read out of memory. For data that fit the reader's first cache that costs as much as the copy
  // itself: Zen 4, near, a put takes 0.47 of the time, put and read 1.23; far 0.24 and less. Longer ones take 0.7 to
  // 0.8.
  static constexpr float clearly(std::size_t kind, std::size_t than, std::size_t group) {
    const bool first_cache = group < 3;  // up to 16 KiB
    if (streams(kind)) return first_cache ? 0.4f : 0.85f;
    if (streams(than)) return first_cache ? 2.5f : 1.0f;
    return tuning::clearly_better;
  }
};
using Putting = tuning::Samples<PuttingRows>;
using Getting = tuning::Samples<GettingRows>;

}  // namespace nearfield::copying
