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
using tuning::pace, tuning::size_class;

namespace {

// All members' moments of the block's calls, by slots.
tuning::Agreed agree(CollectiveContext& context, const tuning::Trials& trials) {
  using tuning::Moment, tuning::Timing;
  const Timing timing = !trials.together()                 ? Timing::each
                        : context.shape().oversubscribed() ? Timing::from_first_to_last
                                                           : Timing::together;
  const std::span<const Moment> mine = trials.block();
  const std::uint64_t seq = context.next_slot();
  std::memcpy(context.reserve_slot(seq), mine.data(), mine.size_bytes());
  context.publish_slot(seq, mine.size_bytes());
  context.meet_slots(seq);
  return tuning::of_all(context.size(), mine.size(), timing, [&](int r, std::size_t i) {
    Moment theirs;
    std::memcpy(&theirs, context.slot(r, seq) + i * sizeof theirs, sizeof theirs);
    return theirs;
  });
}

// Calls of a block that count. Among ranks that share CPUs a few tell little: the first ones by another row meet ranks
// in other places, and where ranks run ahead each does several in its turn.
unsigned timed_calls(const team::Shape& shape, Collective collective, double estimate) {
  using namespace tuning::constants;
  if (!shape.oversubscribed()) return block_timed;
  const double least = collectives::rooted(collective) ? block_ahead : block_timed;
  return unsigned(std::clamp<double>(long_block / estimate, least, block_oversubscribed));
}

}  // namespace

TeamServices::TeamServices(std::unique_ptr<const Tuned> tuned) : tuned_(std::move(tuned)) {}
TeamServices::~TeamServices() = default;

void TeamServices::begin_configuration(const Settings& settings, std::byte* room, int size) const {
  auto* const words = new (room) ChooserControlBlock{};
  words->choosing = settings.choosing;
  settings.algorithm.copy(words->algorithm, sizeof words->algorithm - 1);
  if (tuned_) tuned_->fill_in(size, words->tuned);
}

Chooser::Chooser() { text_.reserve(sizeof ChooserControlBlock::algorithm); }

void Chooser::serve(const team::Team& team, bool tries) {
  team_ = &team;
  if (team.process().services().configuration_bytes() < sizeof(ChooserControlBlock)) return;
  words_ = reinterpret_cast<ChooserControlBlock*>(team.shared_configuration());
  tries_ = tries && words_->choosing == Choosing::trial;
  text_ = words_->algorithm;
}

void Chooser::override_with(std::string_view text) {
  text_ = text;
  for (auto& of_collective : cells_)
    for (Cell& cell : of_collective) cell = {};
}

const tuning::Trials* Chooser::trials_of(Collective collective, std::size_t bytes) const {
  return cell_of(collective, bytes).tuner.get();
}

void Chooser::decide(Collective collective, std::size_t bytes, const Algorithm& row, const Algorithm& staged) {
  cell_of(collective, bytes).rows = {&row, &staged};
}

Chooser::Rows Chooser::rows_for(const Call& call) const {
  if (const Rows& rows = cell_of(call.collective, call.bytes).rows; rows.row) return rows;
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
    return row && row->applies(shape(), call) &&
                   standing(text_, call.collective, row->name) != tuning::Standing::excluded
               ? row
               : nullptr;
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
  cell.rows = {chosen.best, chosen.staged};
  cell.event = 0;
  if (!tries_ || chosen.promising.size() < 2) return;
  const bool rooted = collectives::rooted(call.collective);
  cell.tuner = std::make_unique<Tuner>(std::move(chosen.promising), chosen.cost, rooted || shape().oversubscribed(),
                                       timed_calls(shape(), call.collective, chosen.cost));
  std::vector<double> leaves;
  for (const Row row : cell.tuner->rows) leaves.push_back(left_behind(shape(), *row, call));
  cell.tuner->may_leave(leaves, chosen.leaves);
  cell.event = cell.calls + pace().first;
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
  const std::uint64_t next_epoch = (cell.calls / pace().epoch + 1) * pace().epoch;
  return team_->rank() == 0 ? std::min(next_epoch, cell.calls + pace().watch) : next_epoch;
}

// Such a call has taken so many nanoseconds.
void Chooser::watch(const Call& call, Cell& cell, std::uint64_t nanoseconds) {
  auto& word = *revisit(call, cell);
  Tuner& tuner = *cell.tuner;
  const std::uint64_t epoch = cell.calls / pace().epoch;
  if (cell.calls % pace().epoch == 0 && word.load(std::memory_order_relaxed) == std::uint32_t(epoch)) {
    tuner.restart(cell.calls);
    cell.event = tuner.event();
    return;
  }
  cell.event = next_watched(cell);
  if (team_->rank() != 0) return;
  const bool asked = std::int32_t(word.load(std::memory_order_relaxed) - std::uint32_t(epoch)) > 0;
  if (tuner.due(float(nanoseconds), waiting::nanoseconds()) && !asked)
    word.store(std::uint32_t(epoch + 2), std::memory_order_relaxed);
}

void Chooser::report(const Call& call, const Tuner& tuner) const {
  if (team_->rank() != 0) return;
  Decision found{call.collective, call.bytes,          team_->size(), tuner.row(tuner.best())->name,
                 tuner.tried(),   tuner.tried_calls(), tuner.spent()};
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks: %s (tried %s; %u calls, %.1f us beyond the best)",
           collectives::name(found.collective), found.bytes, found.ranks, found.algorithm,
           tuning::describe(found.tried).c_str(), found.calls, found.beyond_best_ns / 1e3);
  if (decisions_are_kept()) keep(std::move(found));
}

Chooser::Row Chooser::run_trial(CollectiveContext& context, const Call& call, Cell& cell) {
  Tuner& tuner = *cell.tuner;
  const Row row = tuner.row(tuner.current());
  const std::uint64_t entered = waiting::nanoseconds();
  const Row ran = Rows{row, cell.rows.staged}.run(context, call);
  const std::uint64_t left = waiting::nanoseconds();
  const bool ended = tuner.over(cell.calls, ran == row, {entered, left}, [&] { return agree(context, tuner); });
  cell.event = tuner.event();
  if (!ended) return ran;
  cell.rows.row = tuner.row(tuner.best());
  cell.skips = {};
  if (tuner.decided()) {
    report(call, tuner);
    cell.event = next_watched(cell);
  }
  return ran;
}

bool Chooser::event_ready(CollectiveContext& context, const Call& call, const Cell& cell) const {
  if (!cell.rows.row) {
    const Row row = rows_for(call).row;
    return !row || row_ready(context, call, row);  // none: all turn elsewhere at once
  }
  const Tuner& tuner = *cell.tuner;
  if (tuner.decided()) return row_ready(context, call, cell.rows.row);
  // The end of a block is agreed on.
  return !tuner.ends_block() && row_ready(context, call, tuner.row(tuner.current()));
}

Chooser::Row Chooser::perform_slowly(CollectiveContext& context, const Call& call, Cell& cell) {
  if (!cell.rows.row) {
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
    return first->rows.row ? first->rows.run(context, call, first->skips) : nullptr;
  }
  if (!cell.tuner->decided()) return run_trial(context, call, cell);
  const std::uint64_t start = waiting::nanoseconds();
  const Row ran = cell.rows.run(context, call, cell.skips);
  watch(call, cell, waiting::nanoseconds() - start);
  return ran;
}

}  // namespace nearfield::choosing
