// Kinds of stores for one copy to or from another process's memory, found by the time of the copy (trials.hpp). The
// time in which the owner reads the data afterwards is unknown, so streaming stores are taken only if they are clearly
// faster.
#pragma once
#include "engine/copying/copy.hpp"
#include "engine/copying/trials.hpp"

namespace nearfield::copying {

// shorter ones are not tried: reading the clock would take a noticeable part
inline constexpr std::size_t least_landed = 4096;
inline constexpr std::array<Store, 3> put_stores{Store::temporal, Store::claiming, Store::streaming};
// Data that we get will be read soon, so none is streaming.
inline constexpr std::array<Store, 3> get_stores{Store::temporal, Store::claiming, Store::vector};

template <int Direction>  // 0 put, 1 get
struct LandingCells {
  static constexpr std::size_t kinds = 3;
  static constexpr std::size_t count = 11;  // up to 4 KiB, twice that, and so on; more than 2 MiB
  static constexpr int first = 12, step = 1;
  // Streamed data are read out of memory. For data that fit the reader's first cache that costs as much as the copy
  // itself: with the cores near, 16 KiB took 0.47 of the time to put and 1.23 of the time to put and read, 32 KiB and
  // more 0.7 to 0.8; with the cores far 0.24 and less (Zen 4).
  static constexpr float clearly(std::size_t kind, std::size_t than, std::size_t group) {
    if (Direction == 1 || (put_stores[kind] != Store::streaming && put_stores[than] != Store::streaming)) return 0.93f;
    if (put_stores[kind] != Store::streaming) return group < longer_than_first_cache ? 2.5f : 1.0f;
    return group < longer_than_first_cache ? 0.4f : 0.85f;
  }
  // Timing a long copy costs nothing, and noticing a change late would.
  static constexpr unsigned watch_every(std::size_t group) { return group < 5 ? 32 : 2; }
  static constexpr std::size_t longer_than_first_cache = 3;  // more than 16 KiB
};
using Putting = StoreTrials<LandingCells<0>>;
using Getting = StoreTrials<LandingCells<1>>;

}  // namespace nearfield::copying
