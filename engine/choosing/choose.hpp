// Which algorithm: the cheapest that applies, unless an override says otherwise.
//
// An override is a list of sentences separated by ";": "allreduce:partitioned" forces an algorithm (where it does not
// apply to a call, the cheapest of the others is taken), "alltoall:^slots" excludes one; several names are separated
// by ",". Whatever decides is equal on all members: the text is the first member's, applicability and cost are
// functions of the team and of arguments that MPI guarantees to be equal.
#pragma once
#include <string>
#include <string_view>

#include "engine/collectives/table.hpp"

namespace nearfield::choosing {

// Empty when the text can be honoured, else what is wrong and which names there are.
std::string complain_about(std::string_view override_text);

// Fills the team's choice for the call; false where no algorithm applies.
bool choose_slowly(team::Team& team, const collectives::Call& call, team::Team::Choice& choice);

// Class k holds the lengths from 2^(k-1) + 1 to 2^k.
inline unsigned size_class(std::size_t bytes) { return bytes > 1 ? (64 - __builtin_clzll(bytes - 1)) & 63 : 0; }

inline team::Team::Choice* choose(team::Team& team, const collectives::Call& call) {
  auto& choice = team.chosen[std::size_t(call.collective)][size_class(call.bytes)];
  if (choice.algorithm && choice.algorithm->applies(team.shape(), call)) [[likely]]
    return &choice;
  return choose_slowly(team, call, choice) ? &choice : nullptr;
}

// Chooses and runs; nullptr where no algorithm applies, on all members alike. Buffers of one size that were out of
// reach will be so again: after each failure the next calls, twice as many each time, do not even ask.
inline const collectives::Algorithm* perform(team::Team& team, const collectives::Call& call) {
  team::Team::Choice* const choice = choose(team, call);
  if (!choice) [[unlikely]]
    return nullptr;
  if (choice->skip == 0) [[likely]] {
    if (collectives::run(team, *choice->algorithm, call)) {
      choice->failures = 0;
      return choice->algorithm;
    }
    choice->skip = 1u << std::min(++choice->failures, 6u);
  } else {
    --choice->skip;
  }
  if (!choice->staged) return nullptr;
  choice->staged->run(team, call);
  return choice->staged;
}

}  // namespace nearfield::choosing
