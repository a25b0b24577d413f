// Kinds of stores by which one core fills a copy buffer and another empties it. The one that fills measures its time,
// learns that of emptying, and takes the kinds with the least sum (tuning/samples.hpp), per peer.
#pragma once
#include "engine/copying/copy.hpp"
#include "engine/tuning/samples.hpp"

namespace nearfield::copying {

struct Kinds {
  Store fill, drain;
};
inline constexpr std::array<Kinds, 4> handover_kinds{{{Store::vector, Store::vector},
                                                      {Store::claiming, Store::claiming},
                                                      {Store::claiming, Store::vector},
                                                      {Store::streaming, Store::vector}}};

struct HandoverRows {
  static constexpr std::size_t family = 2;
  static constexpr std::size_t kinds = handover_kinds.size();
  static constexpr unsigned first = 10;  // up to 1 KiB, 2, 4, 8, 16, more
  static constexpr std::size_t count = 6;
  static constexpr std::size_t in_own_buffers = 4096;
  static constexpr unsigned watch_every(std::size_t) { return tuning::samples_of_best; }
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) { return tuning::clearly_better; }
};
using Handover = tuning::Samples<HandoverRows>;

// Through buffers that come back to whoever empties them any temporal stores do, since the lines are at home.
inline constexpr std::uint8_t returning_kind = 0;

}  // namespace nearfield::copying
