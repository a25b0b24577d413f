// Chooses an algorithm: the cheapest by the model, unless an override says otherwise. The Chooser adds tuning files and
// trials (chooser.hpp).
//
// An override is a list of sentences separated by ";": "allreduce:partitioned" forces an algorithm (where it does not
// apply to a call, the cheapest of the others is taken; several forced ones are tried against each other),
// "alltoall:^slots" excludes one, unless no other applies; several names are separated by ",". Whatever decides is
// equal on all members: the text is the first member's, applicability and cost are functions of the team and of
// arguments that MPI guarantees to be equal.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/collectives/table.hpp"
#include "engine/tuning/ranking.hpp"

namespace nearfield::choosing {

// Returns what is wrong with the text and which names are valid; empty: it is valid. `more`: names of algorithms over
// several nodes.
using MoreNames = std::vector<std::string_view> (*)(collectives::Collective);
std::string complain_about(std::string_view override_text, MoreNames more = nullptr);

// Whether an override lets a row be used.
tuning::Standing standing(std::string_view override_text, collectives::Collective collective, std::string_view name);

// Returns the ns that a row between user buffers costs the program later, on the rank that loses most. When the program
// writes a send buffer again, it fetches back the lines that peers have read. When peers write results again, they
// fetch the lines that the program has read.
double left_behind(const team::Shape& shape, const collectives::Algorithm& row, const collectives::Call& call);

inline constexpr std::size_t candidates = 6;  // most rows that are tried

// The model's choice among the rows that apply to a call.
struct Chosen {
  // The cheapest that the override favours, and the cheapest of those that need no reach; nullptr where none applies.
  const collectives::Algorithm *best = nullptr, *staged = nullptr;
  // Rows worth a trial, the best first; then the best rows of other states that the members' CPUs may come into
  // (machine/states.hpp).
  std::vector<const collectives::Algorithm*> promising;
  double cost = 0;      // of the best, with what it leaves behind, ns
  bool forced = false;  // by the override
};
Chosen choose(const team::Shape& shape, std::string_view override_text, const collectives::Call& call);

}  // namespace nearfield::choosing
