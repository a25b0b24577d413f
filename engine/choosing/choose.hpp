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

const collectives::Algorithm* choose_slowly(team::Team& team, const collectives::Call& call);

// Class k holds the lengths from 2^(k-1) + 1 to 2^k.
inline unsigned size_class(std::size_t bytes) { return bytes > 1 ? (64 - __builtin_clzll(bytes - 1)) & 63 : 0; }

inline const collectives::Algorithm* choose(team::Team& team, const collectives::Call& call) {
  const auto* known = team.chosen[std::size_t(call.collective)][size_class(call.bytes)];
  if (known && known->applies(team, call)) [[likely]]
    return known;
  return choose_slowly(team, call);
}

}  // namespace nearfield::choosing
