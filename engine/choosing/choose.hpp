// Which algorithm: what a file says, or the cheapest by the model, and then what trials have found (trials.hpp), unless
// an override says otherwise.
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

namespace nearfield::choosing {

// Empty when the text can be honoured, else what is wrong and which names there are.
std::string complain_about(std::string_view override_text);

// Class k holds the lengths from 2^(k-1) + 1 to 2^k.
inline unsigned size_class(std::size_t bytes) { return bytes > 1 ? (64 - __builtin_clzll(bytes - 1)) & 63 : 0; }

// Nanoseconds that a row between user buffers leaves for the program to pay, beside its cost: lines of its send buffers
// that peers have read must be fetched back when it writes there again, and lines of results that the program has read
// when peers write there. By the rank that loses most.
double left_behind(const team::Shape& shape, const collectives::Algorithm& row, const collectives::Call& call);

// Of the rows that apply to a call: what the model says.
struct Chosen {
  // The cheapest that the override favours, and the cheapest of those that need no reach; nullptr where none applies.
  const collectives::Algorithm *best = nullptr, *staged = nullptr;
  std::vector<const collectives::Algorithm*> promising;  // worth a trial, the best first
  double cost = 0;                                       // of the best, with what it leaves behind, ns
  bool forced = false;                                   // by the override
};
Chosen choose(const team::Shape& shape, std::string_view override_text, const collectives::Call& call);

// Runs `algorithm`; where it needs buffers that are out of reach, `staged`. What ran, nullptr: none could, on all
// members alike, and nothing has been moved.
inline const collectives::Algorithm* run_or_staged(team::Team& team, const collectives::Call& call,
                                                   const collectives::Algorithm& algorithm,
                                                   const collectives::Algorithm* staged) {
  if (collectives::run(team, algorithm, call)) return &algorithm;
  if (!staged) return nullptr;
  staged->run(team, call);
  return staged;
}

// The trials of a cell; nullptr: it has none.
class Trials;
const Trials* trials_of(const team::Team& team, collectives::Collective collective, std::size_t bytes);

// What needs no reach and applies to a call; nullptr: nothing. Slow.
const collectives::Algorithm* find_staged(const team::Team& team, const collectives::Call& call);

// Runs the cell's algorithm, which applies. Buffers of one size that were out of reach will be so again: after each
// failure the next calls, twice as many each time, do not even ask. Every call that runs the cell's algorithm comes
// through here, also where one member alone times it: what is skipped must be equal on all.
inline const collectives::Algorithm* run_chosen(team::Team& team, const collectives::Call& call,
                                                team::Team::Choice& choice) {
  const collectives::Algorithm* const algorithm = choice.algorithm;
  if (algorithm->reach == collectives::staged) [[likely]] {
    algorithm->run(team, call);
    return algorithm;
  }
  const auto* const staged =
      choice.staged && choice.staged->applies(team.shape(), call) ? choice.staged : find_staged(team, call);
  if (staged && choice.skip > 0) {
    --choice.skip;
    staged->run(team, call);
    return staged;
  }
  const auto* const ran = run_or_staged(team, call, *algorithm, staged);
  if (ran == algorithm) choice.failures = 0;
  else choice.skip = 1u << std::min(++choice.failures, 6u);
  return ran;
}

// Calls that are not run as those before: the first, those of trials, those to which the cell's choice does not apply.
const collectives::Algorithm* perform_slowly(team::Team& team, const collectives::Call& call,
                                             team::Team::Choice& choice);

// Chooses and runs; nullptr where no algorithm applies, on all members alike.
inline const collectives::Algorithm* perform(team::Team& team, const collectives::Call& call) {
  auto& choice = team.chosen[std::size_t(call.collective)][size_class(call.bytes)];
  if (++choice.calls == choice.event || !choice.algorithm->applies(team.shape(), call)) [[unlikely]]
    return perform_slowly(team, call, choice);
  return run_chosen(team, call, choice);
}

}  // namespace nearfield::choosing
