// What a call leaves behind in caches, for the caller to pay when it comes back to its buffers (trials.hpp).
#pragma once
#include <algorithm>

#include "engine/tuning/constants.hpp"

namespace nearfield::tuning {

// Returns the part of so many touched bytes that a cache of `cache` bytes still holds when the program comes back to
// them: lines that do not stay in the peer's have left it before, and cost nothing more.
inline double part_that_stays(double touched, double cache) {
  return std::clamp(constants::stays_until - touched / cache, 0.0, 1.0);
}

}  // namespace nearfield::tuning
