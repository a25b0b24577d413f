// How bytes get into, or out of, another process's memory by one copy of ours: the kinds of stores, found by what the
// copy costs us (trials.hpp). What reading the data costs their owner afterwards we are not told; so the last-level
// cache is passed by only where that is clearly faster.
#pragma once
#include "engine/copying/copy.hpp"
#include "engine/copying/trials.hpp"

namespace nearfield::copying {

inline constexpr std::size_t least_landed = 4096;  // shorter ones are not tried: a look at the clock would show
inline constexpr std::array<Store, 3> put_stores{Store::temporal, Store::claiming, Store::streaming};
// What we get we are about to read.
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
  // Beside a long copy the clock costs nothing, and waiting for a change would.
  static constexpr unsigned watch_every(std::size_t group) { return group < 5 ? 32 : 2; }
  static constexpr std::size_t longer_than_first_cache = 3;  // more than 16 KiB
};
using Putting = StoreTrials<LandingCells<0>>;
using Getting = StoreTrials<LandingCells<1>>;

}  // namespace nearfield::copying
