#include "engine/hierarchy/chooser.hpp"

#include <numeric>

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

// All ranks' times of a block's calls as one of each, or one for all of them, by an allreduce of ours.
tuning::Agreed agree(Hierarchy& hierarchy, const tuning::Trials& trials) {
  std::vector<float> mine = tuning::of_one(trials.moments()).times;
  const bool oversubscribed = hierarchy.shape().node.oversubscribed();
  if (trials.together() || oversubscribed)
    mine = {std::accumulate(mine.begin(), mine.end(), 0.0f) / float(mine.size())};
  tuning::Agreed all{std::vector<float>(mine.size())};
  Call call{.collective = Collective::allreduce};
  call.type = reducing::Type::f32;
  call.op = trials.together() ? reducing::Op::max : oversubscribed ? reducing::Op::sum : reducing::Op::min;
  call.fold = reducing::fold(call.op, call.type);
  call.count = mine.size();
  call.bytes = mine.size() * sizeof mine[0];
  call.send = mine.data();
  call.recv = all.times.data();
  reduce_by_leaders(hierarchy, call);
  if (call.op == reducing::Op::sum) all.times[0] /= float(hierarchy.size());
  return all;
}

void report(const Hierarchy& hierarchy, const Call& call, const tuning::Tuner<HierarchyAlgorithm>& tuner) {
  if (hierarchy.rank() != 0) return;
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks of %d nodes: %s (tried %s)", collectives::name(call.collective),
           call.bytes, hierarchy.size(), hierarchy.nodes(), tuner.row(tuner.best())->name,
           tuning::describe(tuner.tried()).c_str());
}

}  // namespace

// The first call of a cell. A row of ours that is estimated to take much longer than the best one is not tried: short
// lanes need a message of every rank, which costs other users of the network more than a noisy trial tells.
void HierarchyChooser::begin(const Hierarchy& hierarchy, const Call& call, Cell& cell) {
  using namespace tuning::constants;
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
  auto promising = tuning::rank(rows, net_hopeless, tuning::Trials::most_candidates);
  cell.row = rows[0].row;
  if (!tries_ || promising.size() < 2) return;
  const double cost = rows[0].cost;
  const bool brief = cost < net_brief;
  cell.tuner = std::make_unique<Tuner>(std::move(promising), cost, collectives::rooted(call.collective),
                                       brief ? net_timed : net_timed_long,
                                       cell.calls + (brief ? tuning::pace().first : net_first_long));
}

const HierarchyAlgorithm* HierarchyChooser::perform(Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host) {
  Cell& cell = cells_->cell[std::size_t(call.collective)][tuning::size_class(call.bytes)][depends_on_order(call)];
  if (!cell.row) [[unlikely]]
    begin(hierarchy, call, cell);
  ++cell.calls;
  if (!cell.tuner || !cell.tuner->tries(cell.calls)) {
    // Of a class of lengths the shorter ones may be too short for it.
    const HierarchyAlgorithm& row =
        cell.row->applies(hierarchy.shape(), call) ? *cell.row : rows_of(call.collective)[0];
    run(row, hierarchy, call, host);
    return row.run ? &row : nullptr;
  }
  Tuner& tuner = *cell.tuner;
  const HierarchyAlgorithm& row = *tuner.row(tuner.current());
  const std::uint64_t entered = waiting::nanoseconds();
  run(row, hierarchy, call, host);
  if (tuner.over(cell.calls, true, {entered, waiting::nanoseconds()}, [&] { return agree(hierarchy, tuner); })) {
    cell.row = tuner.row(tuner.best());
    if (tuner.decided()) report(hierarchy, call, tuner);
  }
  return row.run ? &row : nullptr;
}

}  // namespace nearfield::hierarchy
