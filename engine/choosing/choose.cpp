#include "engine/choosing/choose.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/collectives/costs.hpp"
#include "engine/trying/trials.hpp"

namespace nearfield::choosing {
namespace {

using collectives::Algorithm;
using collectives::Collective;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Sentence {
  std::string_view collective;
  std::vector<std::string_view> names;  // with their ^
};

Sentence parse(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), split(colon < text.size() ? text.substr(colon + 1) : std::string_view{}, ',')};
}

// Whether the override lets an algorithm be used: 2 forced, 1 allowed, 0 excluded.
int standing(std::string_view override_text, const Algorithm& algorithm) {
  int result = 1;
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    if (sentence.collective != collectives::name(algorithm.collective)) continue;
    for (auto name : sentence.names) {
      const bool excluded = name.front() == '^';
      if (excluded) name.remove_prefix(1);
      if (name == algorithm.name) result = excluded ? 0 : 2;
    }
  }
  return result;
}

}  // namespace

std::string complain_about(std::string_view override_text) {
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    std::string names;
    const auto which = collectives::collective_named(sentence.collective);
    if (!which) {
      for (std::size_t c = 0; c < collectives::collective_count; ++c)
        names += (c ? ", " : "") + std::string(collectives::name(Collective(c)));
      return "\"" + std::string(sentence.collective) + "\" is not a collective; there are " + names;
    }
    const auto rows = collectives::algorithms(*which);
    for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
    if (sentence.names.empty())
      return "\"" + std::string(part) + "\" names no algorithm; " + std::string(sentence.collective) + " has " + names;
    std::size_t excluded = 0;
    for (auto name : sentence.names) {
      if (name.front() == '^') {
        name.remove_prefix(1);
        ++excluded;
      }
      bool known = false;
      for (const auto& row : rows) known |= name == row.name;
      if (!known)
        return "\"" + std::string(name) + "\" is not an algorithm of " + std::string(sentence.collective) +
               "; there are " + names;
    }
    if (excluded >= rows.size())
      return "\"" + std::string(part) + "\" leaves no algorithm of " + std::string(sentence.collective);
  }
  return {};
}

namespace {

using collectives::Call;
using team::Team;

// What is tried: rows within so many times the cheapest estimate. In crowds nobody can foresee who runs when.
struct Tries {
  double hopeless;
  std::size_t most;
};
Tries tries_in(const team::Shape& s) { return s.crowded() ? Tries{3, Trials::most_candidates} : Tries{1.5, 4}; }

}  // namespace

double left_behind(const team::Shape& s, const Algorithm& row, const Call& call) {
  if (row.reach == collectives::staged || s.crowded()) return 0;
  const double others = s.size - 1, n = collectives::in_bytes(call);
  const collectives::Operation& op = collectives::operation(call.collective);
  const auto gives = double(op.gives.each(s.size)), gets = double(op.gets.each(s.size));
  // Bytes of one member: those that peers read, and all.
  const bool each_reads_a_part = op.gives.amount == collectives::Amount::blocks || op.reduces();
  const double taken = each_reads_a_part ? gives * n * others / s.size : n, touched = (gives + gets) * n;
  // What does not stay in a private cache between calls has left it before a peer comes.
  const double stays = s.machine.own > 0 ? std::clamp(1.5 - touched / s.machine.own, 0.0, 1.0)
                                         : 1 - collectives::spilled(s, taken * s.size);
  return row.taken * collectives::handed(s, &Handing::left) * taken * stays;
}

Chosen choose(const team::Shape& shape, std::string_view override_text, const Call& call) {
  struct Row {
    const Algorithm* algorithm;
    int standing;
    double cost;
  };
  std::vector<Row> rows;
  const auto all = collectives::algorithms(call.collective);
  for (const auto& row : all)
    if (row.applies(shape, call))
      rows.push_back({&row, standing(override_text, row), row.cost(shape, call) + left_behind(shape, row, call)});
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    return a.standing != b.standing ? a.standing > b.standing : a.cost < b.cost;
  });
  Chosen chosen;
  if (rows.empty()) return chosen;
  const auto staged =
      std::ranges::find_if(rows, [](const Row& r) { return r.algorithm->reach == collectives::staged; });
  if (staged != rows.end()) chosen.staged = staged->algorithm;
  chosen.best = rows[0].algorithm;
  chosen.cost = rows[0].cost;
  const Tries tries = tries_in(shape);
  for (const Row& row : rows)
    if (row.standing == rows[0].standing && row.standing > 0 &&
        (row.standing == 2 || row.cost <= tries.hopeless * rows[0].cost) && chosen.promising.size() < tries.most &&
        (!row.algorithm->worth || row.standing == 2 || row.algorithm->worth(shape, call)))
      chosen.promising.push_back(row.algorithm);
  chosen.forced = rows[0].standing == 2;
  return chosen;
}

namespace {

// By the model, or by what a file says.
Chosen choose_for(const Team& team, const Call& call) {
  Chosen chosen = choose(team.shape(), team.algorithm_text, call);
  if (team.plan().choosing != Choosing::file || chosen.forced) return chosen;
  const auto all = collectives::algorithms(call.collective);
  const auto& tuned = team.tuned()[std::size_t(call.collective)][size_class(call.bytes)];
  auto named = [&](std::uint8_t number) -> const Algorithm* {
    const Algorithm* const row = number && number <= all.size() ? &all[number - 1] : nullptr;
    return row && row->applies(team.shape(), call) && standing(team.algorithm_text, *row) ? row : nullptr;
  };
  if (const auto* row = named(tuned[0])) chosen.best = row;
  if (const auto* row = named(tuned[1]); row && row->reach == collectives::staged) chosen.staged = row;
  return chosen;
}

// What a cell keeps.
struct Tried final : Team::Kept {
  Tried(std::vector<const Algorithm*> promising, double estimate, bool together)
      : rows(std::move(promising)), trials(rows.size(), estimate, together) {}
  std::vector<const Algorithm*> rows;  // by candidate
  Trials trials;
  const Algorithm* row(const Candidate& candidate) const { return rows[candidate.id]; }
};

// All members' moments of the block's calls, by slots. Nanoseconds of each call, or of one of them (Trials::together).
struct Agreed {
  std::vector<float> times;
  float between = 0;  // ns per call
};
Agreed agree(Team& team, std::span<const Trials::Moment> mine, bool together) {
  // The first call of a block does not count; what it leaves behind does.
  const std::uint64_t seq = team.next_slot();
  std::memcpy(team.reserve_slot(seq), mine.data(), mine.size_bytes());
  team.publish_slot(seq, mine.size_bytes());
  team.meet_slots(seq);
  auto moment = [&](int r, std::size_t i) {
    Trials::Moment theirs;
    std::memcpy(&theirs, team.slot(r, seq) + i * sizeof theirs, sizeof theirs);
    return theirs;
  };
  std::vector<Trials::Moment> last(mine.size());
  std::uint64_t outside = 0;  // the longest that a member was between calls, all of them together
  for (int r = 0; r < team.size(); ++r) {
    std::uint64_t pauses = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      last[i].entered = std::max(last[i].entered, moment(r, i).entered);
      last[i].left = std::max(last[i].left, moment(r, i).left);
      if (i > 0) pauses += moment(r, i).entered - moment(r, i - 1).left;
    }
    outside = std::max(outside, pauses);
  }
  const std::size_t counted = mine.size() - 1;
  Agreed agreed{{}, float(outside) / float(std::max<std::size_t>(counted, 1))};
  if (together) {
    // The member that was in calls longest, since all had entered the first.
    std::int64_t longest = 1;
    for (int r = 0; r < team.size(); ++r) {
      std::int64_t inside = 0;
      for (std::size_t i = 1; i < mine.size(); ++i)
        inside += std::int64_t(moment(r, i).left) -
                  std::int64_t(i > 1 ? moment(r, i).entered : std::max(moment(r, i).entered, last[1].entered));
      longest = std::max(longest, inside);
    }
    agreed.times.push_back(float(longest) / float(counted));
  } else {
    for (std::size_t i = 1; i < last.size(); ++i)
      agreed.times.push_back(float(std::max<std::int64_t>(1, std::int64_t(last[i].left - last[i].entered))));
  }
  return agreed;
}

void report(const Team& team, const Call& call, const Tried& tried_rows) {
  if (team.rank() != 0) return;
  const Trials& trials = tried_rows.trials;
  std::string tried;
  for (const auto& candidate : trials.candidates()) {
    char text[80];
    if (candidate.times.empty()) std::snprintf(text, sizeof text, ", %s out of reach", tried_rows.row(candidate)->name);
    else
      std::snprintf(text, sizeof text, ", %s %.2f us", tried_rows.row(candidate)->name,
                    double(trials.estimate(candidate)) / 1e3);
    tried += text;
  }
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks: %s (tried%s; %u calls, %.1f us beyond the best)",
           collectives::name(call.collective), call.bytes, team.size(), tried_rows.row(trials.best())->name,
           tried.c_str() + 1, trials.tried_calls(), trials.spent() / 1e3);
}

// The next call of a decided cell that is not like others: all look for a revisit, the first member also takes times.
std::uint64_t next_watched(const Team& team, const Team::Choice& choice) {
  const std::uint64_t next_epoch = (choice.calls / pace.epoch + 1) * pace.epoch;
  return team.rank() == 0 ? std::min(next_epoch, choice.calls + pace.watch) : next_epoch;
}

// Such a call has taken so many nanoseconds.
void watch(Team& team, Team::Choice& choice, Trials& trials, const Call& call, std::uint64_t nanoseconds) {
  auto& revisit = team.revisit(call.collective, size_class(call.bytes));
  const std::uint64_t epoch = choice.calls / pace.epoch;
  if (choice.calls % pace.epoch == 0 && revisit.load(std::memory_order_relaxed) == std::uint32_t(epoch)) {
    trials.restart();
    choice.event = choice.calls + 1;
    return;
  }
  choice.event = next_watched(team, choice);
  if (team.rank() != 0) return;
  const bool asked = std::int32_t(revisit.load(std::memory_order_relaxed) - std::uint32_t(epoch)) > 0;
  if (trials.due(float(nanoseconds), waiting::nanoseconds()) && !asked)
    revisit.store(std::uint32_t(epoch + 2), std::memory_order_relaxed);
}

// The first call of a cell.
void begin(const Team& team, const Call& call, Team::Choice& choice, const Chosen& chosen) {
  choice.algorithm = chosen.best;
  choice.staged = chosen.staged;
  choice.event = 0;
  if (team.plan().choosing != Choosing::trial || chosen.promising.size() < 2) return;
  choice.trials = std::make_unique<Tried>(chosen.promising, chosen.cost, collectives::rooted(call.collective));
  choice.event = choice.calls + pace.first;
}

const Algorithm* run_trial(Team& team, const Call& call, Team::Choice& choice, Tried& tried,
                           const Algorithm* fallback) {
  Trials& trials = tried.trials;
  const Algorithm& row = *tried.row(trials.current());
  const Algorithm* ran = fallback;
  choice.event = choice.calls + 1;
  const std::uint64_t entered = waiting::nanoseconds();
  if (row.applies(team.shape(), call)) ran = run_or_staged(team, call, row, fallback);
  else if (fallback) fallback->run(team, call);
  const std::uint64_t left = waiting::nanoseconds();
  if (ran != &row) {
    trials.fail_block();
  } else if (trials.note({entered, left})) {
    const Agreed agreed = agree(team, trials.block(), trials.together());
    trials.end_block(agreed.times, agreed.between);
  } else {
    return ran;
  }
  choice.algorithm = tried.row(trials.best());
  choice.skip = choice.failures = 0;
  if (trials.decided()) {
    report(team, call, tried);
    trials.rest(left);
    choice.event = next_watched(team, choice);
  } else {
    choice.event = choice.calls + 1 + trials.pause_calls();
  }
  return ran;
}

}  // namespace

const Trials* trials_of(const Team& team, collectives::Collective collective, std::size_t bytes) {
  const auto* const tried =
      static_cast<const Tried*>(team.chosen[std::size_t(collective)][size_class(bytes)].trials.get());
  return tried ? &tried->trials : nullptr;
}

const Algorithm* find_staged(const Team& team, const Call& call) { return choose_for(team, call).staged; }

const Algorithm* perform_slowly(Team& team, const Call& call, Team::Choice& choice) {
  auto* const tried = static_cast<Tried*>(choice.trials.get());
  const bool event = choice.calls == choice.event;
  const bool decided = tried && tried->trials.decided();
  auto applies = [&](const Algorithm* row) { return row && row->applies(team.shape(), call); };
  if (event && decided && applies(choice.algorithm)) {
    const std::uint64_t start = waiting::nanoseconds();
    const Algorithm* const ran = run_chosen(team, call, choice);
    watch(team, choice, tried->trials, call, waiting::nanoseconds() - start);
    return ran;
  }
  // Once decided, events differ between members: a call that cannot be watched is run as by those that do not watch.
  if (event && tried && !decided && applies(choice.staged)) return run_trial(team, call, choice, *tried, choice.staged);
  const Chosen chosen = choose_for(team, call);
  if (event) choice.event = decided ? next_watched(team, choice) : choice.calls + 1;
  if (!chosen.best) return nullptr;
  if (!choice.algorithm) {
    begin(team, call, choice, chosen);
    return run_chosen(team, call, choice);
  }
  if (event && tried && !decided) return run_trial(team, call, choice, *tried, chosen.staged);
  return run_or_staged(team, call, *chosen.best, chosen.staged);  // the cell's choice does not apply
}

}  // namespace nearfield::choosing
