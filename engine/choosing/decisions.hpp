// What has been chosen by measurement in this process, kept where somebody reports it at the end
// (NEARFIELD_STATS_FILE).
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
  const char* algorithm;  // the one that was chosen
  std::vector<tuning::Tried> tried;
  unsigned calls;         // of trials
  double beyond_best_ns;  // what these took beyond calls by the chosen one
};

/// From now on decisions are kept: of the first member of each team, and no more than `most_decisions`.
void keep_decisions();
bool decisions_are_kept();
inline constexpr std::size_t most_decisions = 4096;

void keep(Decision decision);
void each_decision(FunctionRef<void(const Decision&)> function);

}  // namespace nearfield::choosing
