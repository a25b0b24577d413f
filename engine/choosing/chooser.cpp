#include "engine/choosing/chooser.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/choosing/decisions.hpp"
#include "engine/choosing/tuned.hpp"

namespace nearfield::choosing {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;
using context::CollectiveContext;

// Candidates are numbers to the trials.
struct Chooser::Tried {
  Tried(std::vector<const Algorithm*> promising, double estimate, bool together)
      : rows(std::move(promising)), trials(rows.size(), estimate, together) {}
  std::vector<const Algorithm*> rows;
  Trials trials;
  const Algorithm* row(const Candidate& candidate) const { return rows[candidate.id]; }
};

namespace {

const Tuned* tuned_file;  // of this process

void begin_words(const Settings& settings, std::byte* room, int size) {
  auto* const words = new (room) ChooserControlBlock{};
  words->choosing = settings.choosing;
  settings.algorithm.copy(words->algorithm, sizeof words->algorithm - 1);
  if (tuned_file) tuned_file->tell(size, words->tuned);
}

// All members' moments of the block's calls, by slots. Nanoseconds of each call, or of one of them (Trials::together).
struct Agreed {
  std::vector<float> times;
  float between = 0;  // ns per call
};
Agreed agree(CollectiveContext& context, std::span<const Trials::Moment> mine, bool together) {
  // The first call of a block does not count; what it leaves behind does.
  const std::uint64_t seq = context.next_slot();
  std::memcpy(context.reserve_slot(seq), mine.data(), mine.size_bytes());
  context.publish_slot(seq, mine.size_bytes());
  context.meet_slots(seq);
  auto moment = [&](int r, std::size_t i) {
    Trials::Moment theirs;
    std::memcpy(&theirs, context.slot(r, seq) + i * sizeof theirs, sizeof theirs);
    return theirs;
  };
  std::vector<Trials::Moment> last(mine.size());
  std::uint64_t outside = 0;  // the longest that a member was between calls, all of them together
  for (int r = 0; r < context.size(); ++r) {
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
    for (int r = 0; r < context.size(); ++r) {
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

}  // namespace

void tell_teams(team::Process& process, const Tuned* tuned) {
  tuned_file = tuned;
  process.shared_configuration = {shared_configuration_bytes, begin_words};
  process.describe = collectives::describe_call;
  process.doing_length = collectives::packed_length;
}

Chooser::Chooser() { text_.reserve(sizeof ChooserControlBlock::algorithm); }

void Chooser::serve(const team::Team& team, bool tries) {
  team_ = &team;
  if (team.process().shared_configuration.bytes < sizeof(ChooserControlBlock)) return;
  words_ = reinterpret_cast<ChooserControlBlock*>(team.shared_configuration());
  tries_ = tries && words_->choosing == Choosing::trial;
  text_ = words_->algorithm;
}

Chooser::~Chooser() = default;

void Chooser::override_with(std::string_view text) {
  text_ = text;
  for (auto& of_collective : cells_)
    for (Cell& cell : of_collective) cell = {};
}

const Trials* Chooser::trials_of(Collective collective, std::size_t bytes) const {
  const Cell& cell = cell_of(collective, bytes);
  return cell.trials ? &cell.trials->trials : nullptr;
}

void Chooser::decide(Collective collective, std::size_t bytes, const Algorithm& row, const Algorithm& staged) {
  Cell& cell = cell_of(collective, bytes);
  cell.algorithm = &row;
  cell.staged = &staged;
}

Chooser::Rows Chooser::rows_for(const Call& call) const {
  const Cell& cell = cell_of(call.collective, call.bytes);
  if (cell.algorithm) return {cell.algorithm, cell.staged};
  const Chosen chosen = choose_for(call);
  return {chosen.best, chosen.staged};
}

// By the model, or by what a file says.
Chosen Chooser::choose_for(const Call& call) const {
  Chosen chosen = choose(shape(), text_, call);
  if (!words_ || words_->choosing != Choosing::file || chosen.forced) return chosen;
  const auto all = collectives::algorithms(call.collective);
  const auto& tuned = words_->tuned[std::size_t(call.collective)][size_class(call.bytes)];
  auto named = [&](std::uint8_t number) -> const Algorithm* {
    const Algorithm* const row = number && number <= all.size() ? &all[number - 1] : nullptr;
    return row && row->applies(shape(), call) && standing(text_, *row) ? row : nullptr;
  };
  if (const auto* row = named(tuned[0])) chosen.best = row;
  if (const auto* row = named(tuned[1]); row && row->reach == collectives::staged) chosen.staged = row;
  return chosen;
}

// Where in the class of `call` some row begins or ceases to apply: a cell for each part.
void Chooser::split(const Call& call, Cell& first) {
  Call probe = call;
  const unsigned number = size_class(call.bytes);
  const std::size_t shortest = number ? (std::size_t{1} << (number - 1)) + (number > 1) : 0;
  const std::size_t longest = number ? std::size_t{1} << number : 1;
  std::vector<std::size_t> ends;
  for (const Algorithm& row : collectives::algorithms(call.collective)) {
    auto applies = [&](std::size_t bytes) {
      probe.bytes = bytes;
      return row.applies(shape(), probe);
    };
    std::size_t same = shortest, other = longest;
    const bool at_first = applies(same);
    if (applies(other) == at_first) continue;
    while (other - same > 1) {
      const std::size_t middle = same + (other - same) / 2;
      (applies(middle) == at_first ? same : other) = middle;
    }
    ends.push_back(same);
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::unique_ptr<Cell> longer;
  for (std::size_t i = ends.size(); i-- > 0;) {
    auto cell = std::make_unique<Cell>();
    cell->part = std::uint8_t(i + 1);
    if (i + 1 < ends.size()) cell->upto = ends[i + 1];
    cell->longer = std::move(longer);
    longer = std::move(cell);
  }
  if (!ends.empty()) first.upto = ends.front();
  first.longer = std::move(longer);
}

// The first call of a cell.
void Chooser::begin(const Call& call, Cell& cell) {
  Chosen chosen = choose_for(call);
  cell.event = cell.calls + 1;  // as long as there is nothing
  if (!chosen.best) return;
  cell.algorithm = chosen.best;
  cell.staged = chosen.staged;
  cell.event = 0;
  if (!tries_ || chosen.promising.size() < 2) return;
  cell.trials = std::make_unique<Tried>(std::move(chosen.promising), chosen.cost, collectives::rooted(call.collective));
  cell.event = cell.calls + pace.first;
}

// The word that tells when all try this cell again; nullptr: never.
Atomic<std::uint32_t>* Chooser::revisit(const Call& call, const Cell& cell) const {
  return cell.part < ChooserControlBlock::parts
             ? &words_->revisit[std::size_t(call.collective)][size_class(call.bytes)][cell.part]
             : nullptr;
}

// The next call of a decided cell that is not like others: all look for a revisit, the first member also takes times.
std::uint64_t Chooser::next_watched(const Cell& cell) const {
  if (cell.part >= ChooserControlBlock::parts) return 0;
  const std::uint64_t next_epoch = (cell.calls / pace.epoch + 1) * pace.epoch;
  return team_->rank() == 0 ? std::min(next_epoch, cell.calls + pace.watch) : next_epoch;
}

// Such a call has taken so many nanoseconds.
void Chooser::watch(const Call& call, Cell& cell, std::uint64_t nanoseconds) {
  auto& word = *revisit(call, cell);
  Trials& trials = cell.trials->trials;
  const std::uint64_t epoch = cell.calls / pace.epoch;
  if (cell.calls % pace.epoch == 0 && word.load(std::memory_order_relaxed) == std::uint32_t(epoch)) {
    trials.restart();
    cell.event = cell.calls + 1;
    return;
  }
  cell.event = next_watched(cell);
  if (team_->rank() != 0) return;
  const bool asked = std::int32_t(word.load(std::memory_order_relaxed) - std::uint32_t(epoch)) > 0;
  if (trials.due(float(nanoseconds), waiting::nanoseconds()) && !asked)
    word.store(std::uint32_t(epoch + 2), std::memory_order_relaxed);
}

void Chooser::report(const Call& call, const Tried& tried) const {
  if (team_->rank() != 0) return;
  const Trials& trials = tried.trials;
  Decision found{call.collective,      call.bytes,    team_->size(), tried.row(trials.best())->name, {},
                 trials.tried_calls(), trials.spent()};
  std::string text;
  for (const auto& candidate : trials.candidates()) {
    const bool reached = !candidate.times.empty();
    found.tried.push_back({tried.row(candidate)->name, reached ? trials.estimate(candidate) : 0});
    char one[80];
    if (!reached) std::snprintf(one, sizeof one, ", %s out of reach", found.tried.back().algorithm);
    else
      std::snprintf(one, sizeof one, ", %s %.2f us", found.tried.back().algorithm,
                    double(found.tried.back().nanoseconds) / 1e3);
    text += one;
  }
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks: %s (tried%s; %u calls, %.1f us beyond the best)",
           collectives::name(found.collective), found.bytes, found.ranks, found.algorithm, text.c_str() + 1,
           found.calls, found.beyond_best_ns / 1e3);
  if (decisions_are_kept()) keep(std::move(found));
}

Chooser::Row Chooser::run_trial(CollectiveContext& context, const Call& call, Cell& cell) {
  Tried& tried = *cell.trials;
  Trials& trials = tried.trials;
  const Algorithm& row = *tried.row(trials.current());
  cell.event = cell.calls + 1;
  const std::uint64_t entered = waiting::nanoseconds();
  const Row ran = run_or_staged(context, call, &row, cell.staged);
  const std::uint64_t left = waiting::nanoseconds();
  if (ran != &row) {
    trials.fail_block();
  } else if (trials.note({entered, left})) {
    const Agreed agreed = agree(context, trials.block(), trials.together());
    trials.end_block(agreed.times, agreed.between);
  } else {
    return ran;
  }
  cell.algorithm = tried.row(trials.best());
  cell.skip = cell.failures = 0;
  if (trials.decided()) {
    report(call, tried);
    trials.rest(left);
    cell.event = next_watched(cell);
  } else {
    cell.event = cell.calls + 1 + trials.pause_calls();
  }
  return ran;
}

bool Chooser::event_ready(CollectiveContext& context, const Call& call, const Cell& cell) const {
  if (!cell.algorithm) {
    const Row row = rows_for(call).row;
    return !row || row_ready(context, call, row);  // none: all turn elsewhere at once
  }
  const Tried& tried = *cell.trials;
  if (tried.trials.decided()) return row_ready(context, call, cell.algorithm);
  // The end of a block is agreed on.
  return !tried.trials.ends_block() && row_ready(context, call, tried.row(tried.trials.current()));
}

Chooser::Row Chooser::perform_slowly(CollectiveContext& context, const Call& call, Cell& cell) {
  if (!cell.algorithm) {
    Cell* first = &cell;
    if (cell.part == 0 && !cell.longer) {
      split(call, cell);
      while (call.bytes > first->upto) first = first->longer.get();
      if (first != &cell) {  // this call was counted where it does not belong
        cell.calls = 0;
        ++first->calls;
      }
    }
    begin(call, *first);
    return first->algorithm ? run_chosen(context, call, *first) : nullptr;
  }
  if (!cell.trials->trials.decided()) return run_trial(context, call, cell);
  const std::uint64_t start = waiting::nanoseconds();
  const Row ran = run_chosen(context, call, cell);
  watch(call, cell, waiting::nanoseconds() - start);
  return ran;
}

}  // namespace nearfield::choosing
