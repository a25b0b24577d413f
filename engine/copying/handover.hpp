// Kinds of stores by which one core fills a copy buffer and another empties it. The one that fills measures its time,
// learns that of emptying, and takes the kinds with the least sum (trials.hpp), per peer.
#pragma once
#include "engine/copying/copy.hpp"
#include "engine/copying/trials.hpp"

namespace nearfield::copying {

struct Kinds {
  Store fill, drain;
};
inline constexpr std::array<Kinds, 4> handover_kinds{{{Store::vector, Store::vector},
                                                      {Store::claiming, Store::claiming},
                                                      {Store::claiming, Store::vector},
                                                      {Store::streaming, Store::vector}}};

struct HandoverCells {
  static constexpr std::size_t kinds = handover_kinds.size();
  static constexpr std::size_t count = 4;  // up to 4 KiB, 8, 16, more
  static constexpr int first = 12, step = 1;
  static constexpr unsigned watch_every(std::size_t) { return 32; }
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) { return 0.93f; }
};
using Handover = StoreTrials<HandoverCells>;

}  // namespace nearfield::copying
