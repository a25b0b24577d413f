// What a call leaves behind in caches, for the caller to pay when it comes back to its buffers (tuning/selector.hpp).
#pragma once
#include <algorithm>

#include "engine/machine/machine.hpp"
#include "engine/machine/states.hpp"
#include "engine/tuning/constants.hpp"

namespace nearfield::machine {

// Returns the part of so many touched bytes that a cache of `cache` bytes still holds when the program comes back to
// them: lines that do not stay in the peer's have left it before, and cost nothing more.
inline double part_that_stays(double touched, double cache) {
  return cache > 0 ? std::clamp(tuning::constants::stays_until - touched / cache, 0.0, 1.0) : 0;
}

// Returns the ns that each of so many touched bytes costs later, in the state of `pair`. Lines stay in the peer's own
// cache or, where another state of the machine is quicker, in a last-level cache that the two do not share.
inline double left_behind(const PairCosts& pair, const PairStates& states, const Machine& machine, double touched) {
  const double quickest = states.front().line;
  const bool apart = quickest > 0 && pair.line > quickest && !like(pair.line, quickest);
  return pair.left * part_that_stays(touched, apart || machine.own == 0 ? machine.cache : machine.own);
}

}  // namespace nearfield::machine
