// Which algorithm: the cheapest by the model, unless an override says otherwise. (What a file says, and what trials
// have found, is the Chooser's.)
//
// An override is a list of sentences separated by ";": "allreduce:partitioned" forces an algorithm (where it does not
// apply to a call, the cheapest of the others is taken; several forced ones are tried against each other),
// "alltoall:^slots" excludes one; several names are separated by ",". Whatever decides is equal on all members: the
// text is the first member's, applicability and cost are functions of the team and of arguments that MPI guarantees to
// be equal.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/collectives/table.hpp"
#include "engine/tuning/ranking.hpp"

namespace nearfield::choosing {

// Empty when the text can be honoured, else what is wrong and which names there are. `more`: names of further
// algorithms, of collectives over several nodes.
using MoreNames = std::vector<std::string_view> (*)(collectives::Collective);
std::string complain_about(std::string_view override_text, MoreNames more = nullptr);

// Whether an override lets a row be used.
tuning::Standing standing(std::string_view override_text, collectives::Collective collective, std::string_view name);

// Nanoseconds that a row between user buffers leaves for the program to pay, beside its cost: lines of its send buffers
// that peers have read must be fetched back when it writes there again, and lines of results that the program has read
// when peers write there. By the rank that loses most.
double left_behind(const team::Shape& shape, const collectives::Algorithm& row, const collectives::Call& call);

inline constexpr std::size_t candidates = 6;  // rows that are tried, at most

// Of the rows that apply to a call: what the model says.
struct Chosen {
  // The cheapest that the override favours, and the cheapest of those that need no reach; nullptr where none applies.
  const collectives::Algorithm *best = nullptr, *staged = nullptr;
  // Worth a trial, the best first; then those that are in other states which the members' CPUs may come into.
  std::vector<const collectives::Algorithm*> promising;
  double cost = 0;      // of the best, with what it leaves behind, ns
  bool forced = false;  // by the override
};
Chosen choose(const team::Shape& shape, std::string_view override_text, const collectives::Call& call);

}  // namespace nearfield::choosing
