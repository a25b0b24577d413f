// Estimates what a call costs later: the caller has to fetch the lines that it has left in other caches when it comes
// back to its buffers (tuning/selector.hpp).
#pragma once
#include <algorithm>

#include "engine/machine/machine.hpp"
#include "engine/machine/states.hpp"

namespace nearfield::machine {

// Returns the part of so many touched bytes that a cache of `cache` bytes does not hold when they are touched again:
// half of them if `touched` equals `cache`. Lines that do not stay in the peer's cache have left it before the program
// comes back to them, and cost nothing more.
inline double part_beyond(double touched, double cache) {
  return cache > 0 ? std::clamp(touched / cache - 0.5, 0.0, 1.0) : 1;
}

// Returns the ns that each of so many touched bytes costs later, in the state of `pair`. Lines stay in the peer's own
// cache or, where another state of the machine is quicker, in a last-level cache that the two do not share.
inline double left_behind(const PairCosts& pair, const PairStates& states, const Machine& machine, double touched) {
  const double quickest = states.front().line;
  const bool apart = quickest > 0 && pair.line > quickest && !like(pair.line, quickest);
  return pair.left * (1 - part_beyond(touched, apart || machine.own == 0 ? machine.cache : machine.own));
}

}  // namespace nearfield::machine
