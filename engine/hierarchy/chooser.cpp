#include "engine/hierarchy/chooser.hpp"

#include <span>

#include "engine/hierarchy/groups.hpp"
#include "engine/tuning/lengths.hpp"

namespace nearfield::hierarchy {

using tuning::Standing;

std::string complain_about(std::string_view override_text) {
  return choosing::complain_about(override_text, [](Collective collective) {
    std::vector<std::string_view> names;
    for (const HierarchyAlgorithm& row : rows_of(collective)) names.emplace_back(row.name);
    return names;
  });
}

HierarchyChooser::HierarchyChooser() : cells_(std::make_unique<Cells>()) { text_.reserve(512); }

void HierarchyChooser::begin_anew() {
  for (auto& of_collective : cells_->cell)
    for (auto& of_class : of_collective)
      for (Cell& cell : of_class) cell = {};
}

namespace {

bool depends_on_order(const Call& call) {
  return collectives::operation(call.collective).reduces() && !reducing::associative(call.type);
}

void run(const HierarchyAlgorithm& row, Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host) {
  if (row.run) row.run(hierarchy, call);
  else host();
}

// A round as all ranks have seen it (tuning/selector.hpp), by an allreduce of ours.
tuning::Round agree(Hierarchy& hierarchy, Collective collective, const tuning::Round& mine) {
  const bool apart = collectives::rooted(collective) || hierarchy.shape().node.oversubscribed();
  const float sign = apart ? 1 : -1;  // the most, or the least
  const auto whole = [](const tuning::Block& block) { return block.inside + block.between; };
  const float seen[] = {sign * mine.incumbent.inside, sign * mine.challenger.inside, whole(mine.incumbent),
                        whole(mine.challenger)};
  float all[std::size(seen)];
  Call call{.collective = Collective::allreduce};
  call.type = reducing::Type::f32;
  call.op = reducing::Op::max;
  call.fold = reducing::fold(call.op, call.type);
  call.count = std::size(seen);
  call.bytes = sizeof seen;
  call.send = seen;
  call.recv = all;
  reduce_by_leaders(hierarchy, call);
  return {{sign * all[0], all[2] - sign * all[0]}, {sign * all[1], all[3] - sign * all[1]}};
}

void report(const Hierarchy& hierarchy, const Call& call, std::span<const HierarchyAlgorithm* const> rows,
            const tuning::Selector& selector) {
  if (hierarchy.rank() != 0) return;
  std::vector<tuning::Tried> tried;
  for (unsigned i = 0; i < rows.size(); ++i) tried.push_back({rows[i]->name, selector.nanoseconds(i)});
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks of %d nodes: %s (tried %s)", collectives::name(call.collective),
           call.bytes, hierarchy.size(), hierarchy.nodes(), rows[selector.incumbent()]->name,
           tuning::describe(tried).c_str());
}

// Of the best estimate: a row of ours beyond that is not tried. Short lanes need a message of every rank, which costs
// other users of the network more than a noisy trial tells (2 CPUs: noise chose lanes for 8 B, 88 us; leader 72).
constexpr double hopeless = 1.5;

// How calls of a cell are timed. 2 CPUs, 8 ranks: blocks of two brief calls chose rows of three to five times the best
// time.
struct Timing {
  unsigned calls;       // of a block that count
  std::uint64_t first;  // number of the call with which the first trial begins
};
Timing timing(double estimate) { return estimate < 100e3 ? Timing{8, tuning::pace().first} : Timing{3, 2}; }

}  // namespace

// The first call of a cell.
void HierarchyChooser::begin(const Hierarchy& hierarchy, const Call& call, Cell& cell) {
  using Ranked = tuning::Ranked<HierarchyAlgorithm>;
  const HierarchyShape& shape = hierarchy.shape();
  std::vector<Ranked> rows;
  const bool in_order = hierarchy.reproducible && depends_on_order(call);
  for (const HierarchyAlgorithm& row : rows_of(call.collective)) {
    if (!row.applies(shape, call)) continue;
    const bool orders = std::string_view(row.name) == "in-order";
    if (in_order && !orders) continue;
    const bool fits =
        (in_order || !orders) && (row.run || !depends_on_order(call)) && (!row.worth || row.worth(shape, call));
    const Standing standing = choosing::standing(text_, call.collective, row.name);
    rows.push_back({&row, fits || standing == Standing::forced ? standing : Standing::excluded, row.cost(shape, call),
                    row.run ? Ranked::near_best : Ranked::always});
  }
  cell.rows = tuning::rank(rows, hopeless, choosing::candidates);
  cell.row = rows[0].row;
  if (!tries_ || cell.rows.size() < 2) return;
  const auto [calls, first] = timing(rows[0].cost);
  cell.selector = std::make_unique<tuning::Selector>(std::vector<float>(cell.rows.size()), calls, cell.calls + first);
}

const HierarchyAlgorithm* HierarchyChooser::perform(Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host) {
  Cell& cell = cells_->cell[std::size_t(call.collective)][tuning::size_class(call.bytes)][depends_on_order(call)];
  if (!cell.row) [[unlikely]]
    begin(hierarchy, call, cell);
  ++cell.calls;
  if (!cell.selector || cell.calls != cell.selector->event()) {
    // Of a class of lengths the shorter ones may be too short for it.
    const HierarchyAlgorithm& row =
        cell.row->applies(hierarchy.shape(), call) ? *cell.row : rows_of(call.collective)[0];
    run(row, hierarchy, call, host);
    return row.run ? &row : nullptr;
  }
  tuning::Selector& selector = *cell.selector;
  const HierarchyAlgorithm& row = *cell.rows[selector.current()];
  const bool settled = selector.settled();
  const std::uint64_t entered = waiting::nanoseconds();
  run(row, hierarchy, call, host);
  selector.over(cell.calls, true, {entered, waiting::nanoseconds()},
                [&](const tuning::Round& mine) { return agree(hierarchy, call.collective, mine); });
  cell.row = cell.rows[selector.incumbent()];
  if (!settled && selector.settled()) report(hierarchy, call, cell.rows, selector);
  return row.run ? &row : nullptr;
}

}  // namespace nearfield::hierarchy
