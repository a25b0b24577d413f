// Results of trials in this process, kept for the report at its end (NEARFIELD_STATS_FILE).
#pragma once
#include <cstddef>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/collectives/operations.hpp"
#include "engine/tuning/selector.hpp"

namespace nearfield::choosing {

struct Decision {
  collectives::Collective collective;
  std::size_t bytes;
  int ranks;
  const char* algorithm;  // the chosen one
  std::vector<tuning::Tried> tried;
  unsigned calls;         // number of calls in trials
  double beyond_best_ns;  // time of these calls beyond that of calls by the chosen algorithm
};

/// Keeps decisions from now on: those of teams' first members, at most `most_decisions`.
void keep_decisions();
bool decisions_are_kept();
inline constexpr std::size_t most_decisions = 4096;

void keep(Decision decision);
void each_decision(FunctionRef<void(const Decision&)> function);

}  // namespace nearfield::choosing
