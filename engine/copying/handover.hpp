// Kinds of stores by which one core fills a copy buffer and another empties it. The process that fills measures its own
// time, is told the time of emptying, and takes the kind with the least sum (tuning/samples.hpp), for each peer.
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
  static constexpr unsigned first = 10;  // classes: up to 1 KiB, 2, 4, 8, 16, more
  static constexpr std::size_t count = 6;
  static constexpr std::size_t in_own_buffers = 4096;
  static constexpr unsigned watch_every(std::size_t) { return tuning::samples_of_best; }
  static constexpr float clearly(std::size_t, std::size_t, std::size_t) { return tuning::clearly_better; }
};
using Handover = tuning::Samples<HandoverRows>;

// The kind for buffers that their reader fills next: any temporal stores are fast, since the lines are in its cache.
inline constexpr std::uint8_t returning_kind = 0;

}  // namespace nearfield::copying
