#include "engine/choosing/chooser.hpp"

#include <algorithm>
#include <utility>

#include "engine/choosing/decisions.hpp"
#include "engine/choosing/tuned.hpp"

namespace nearfield::choosing {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;
using context::CollectiveContext;
using tuning::pace, tuning::size_class;

namespace {

// A round as all members have seen it, by slots.
tuning::Round agree(CollectiveContext& context, Collective collective, const tuning::Round& mine) {
  const bool apart = collectives::rooted(collective) || context.shape().oversubscribed();
  const std::uint64_t seq = context.slots.allgather(&mine, sizeof mine);
  return tuning::of_all(std::size_t(context.size()), apart ? tuning::TimeInside::most : tuning::TimeInside::least,
                        [&](std::size_t r) { return context.slots.get<tuning::Round>(int(r), seq); });
}

// Returns how many calls of a block count: many where each tells little. That is so of short calls. It is also so if
// ranks share CPUs: the first calls by another row find ranks in other places, and a rank that runs ahead makes several
// calls in its turn. 8 ranks on 2 CPUs, 14 cells of 8 B and 1 KiB: the choice is within 10 % of the fastest in 9 with
// blocks of 2, in 11 with 8, in 12 with 16 and 32.
unsigned calls_of_block(const team::Shape& shape, Collective collective, double estimate) {
  const bool share = shape.oversubscribed();
  const double least = share && collectives::rooted(collective) ? 8 : tuning::block_least, most = share ? 16 : 8;
  return unsigned(std::clamp(tuning::block_time / estimate, least, most));
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

const tuning::Selector* Chooser::selector_of(Collective collective, std::size_t bytes) const {
  const Cell& cell = cell_of(collective, bytes);
  return cell.measured ? &cell.measured->selector : nullptr;
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

// Divides the class of `call` where some row begins or ceases to apply, and makes a cell for each part.
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
    cell->first = false;
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
  std::vector<float> leaves;
  for (const Row row : chosen.promising) leaves.push_back(float(left_behind(shape(), *row, call)));
  cell.measured = std::make_unique<Measured>(
      Measured{std::move(chosen.promising),
               {std::move(leaves), calls_of_block(shape(), call.collective, chosen.cost), cell.calls + pace().first}});
  cell.event = cell.measured->selector.event();
}

void Chooser::report(const Call& call, const Measured& measured) const {
  if (team_->rank() != 0) return;
  const tuning::Selector& selector = measured.selector;
  Decision found{call.collective,
                 call.bytes,
                 team_->size(),
                 measured.rows[selector.incumbent()]->name,
                 {},
                 unsigned(selector.calls()),
                 selector.beyond()};
  for (unsigned i = 0; i < measured.rows.size(); ++i)
    found.tried.push_back({measured.rows[i]->name, selector.nanoseconds(i)});
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks: %s (tried %s; %u calls, %.1f us beyond the best)",
           collectives::name(found.collective), found.bytes, found.ranks, found.algorithm,
           tuning::describe(found.tried).c_str(), found.calls, found.beyond_best_ns / 1e3);
  if (decisions_are_kept()) keep(std::move(found));
}

Chooser::Row Chooser::run_measured(CollectiveContext& context, const Call& call, Cell& cell) {
  auto& [rows, selector] = *cell.measured;
  const Row row = rows[selector.current()];
  const bool settled = selector.settled();
  const std::uint64_t entered = waiting::nanoseconds();
  const Row ran = Rows{row, cell.rows.staged}.run(context, call);
  const bool ended = selector.over(cell.calls, ran == row, {entered, waiting::nanoseconds()},
                                   [&](const tuning::Round& mine) { return agree(context, call.collective, mine); });
  cell.event = selector.event();
  if (!ended) return ran;
  if (const Row now = rows[selector.incumbent()]; now != std::exchange(cell.rows.row, now)) cell.skips = {};
  if (!settled && selector.settled()) report(call, *cell.measured);
  return ran;
}

bool Chooser::event_ready(CollectiveContext& context, const Call& call, const Cell& cell) const {
  if (!cell.rows.row) {
    const Row row = rows_for(call).row;
    return !row || row_ready(context, call, row);  // none: all turn elsewhere at once
  }
  const tuning::Selector& selector = cell.measured->selector;
  return !selector.ends_round() && row_ready(context, call, cell.measured->rows[selector.current()]);
}

Chooser::Row Chooser::perform_slowly(CollectiveContext& context, const Call& call, Cell& cell) {
  if (cell.rows.row) return run_measured(context, call, cell);
  Cell* first = &cell;
  if (cell.first && !cell.longer) {
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

}  // namespace nearfield::choosing
