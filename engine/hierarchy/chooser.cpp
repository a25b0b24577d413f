#include "engine/hierarchy/chooser.hpp"

#include <algorithm>

#include "engine/hierarchy/groups.hpp"

namespace nearfield::hierarchy {

using tuning::Candidate;
using tuning::Trials;

std::string complain_about(std::string_view override_text) {
  return choosing::complain_about(override_text, [](Collective collective) {
    std::vector<std::string_view> names;
    for (const HierarchyAlgorithm& row : rows_of(collective)) names.emplace_back(row.name);
    return names;
  });
}

struct HierarchyChooser::Tried {
  Tried(std::vector<const HierarchyAlgorithm*> candidates, double estimate, bool together)
      : rows(std::move(candidates)), trials(rows.size(), estimate, together, estimate < brief ? 8 : 3) {}
  static constexpr double brief = 100e3;  // ns. What a network adds varies more than what memory does
  std::vector<const HierarchyAlgorithm*> rows;
  Trials trials;
  const HierarchyAlgorithm* row(const Candidate& candidate) const { return rows[candidate.id]; }
};

HierarchyChooser::HierarchyChooser() : cells_(std::make_unique<Cells>()) { text_.reserve(512); }
HierarchyChooser::~HierarchyChooser() = default;

void HierarchyChooser::begin_anew() {
  for (auto& of_collective : cells_->cell)
    for (auto& of_class : of_collective)
      for (Cell& cell : of_class) cell = {};
}

namespace {

// A row of ours that is estimated to take as many times the best one's time is not tried: short lanes need a message
// of every rank, which costs other users of the network more than a noisy trial tells.
constexpr double hopeless = 1.5;

bool depends_on_order(const Call& call) {
  return collectives::operation(call.collective).reduces() && !reducing::associative(call.type);
}

void run(const HierarchyAlgorithm& row, Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host) {
  if (row.run) row.run(hierarchy, call);
  else host();
}

// All ranks' times of a block's calls as one of each, or one for all of them, by an allreduce of ours.
std::vector<float> agree(Hierarchy& hierarchy, const Trials& trials) {
  std::vector<float> mine, all;
  float whole = 0;
  for (const Trials::Moment& moment : trials.moments()) {
    const auto inside = float(std::max<std::int64_t>(1, std::int64_t(moment.left - moment.entered)));
    whole += inside;
    mine.push_back(inside);
  }
  const bool oversubscribed = hierarchy.shape().node.oversubscribed();
  if (trials.together() || oversubscribed) mine = {whole / float(mine.size())};
  all.resize(mine.size());
  Call call{.collective = Collective::allreduce};
  call.type = reducing::Type::f32;
  call.op = trials.together() ? reducing::Op::max : oversubscribed ? reducing::Op::sum : reducing::Op::min;
  call.fold = reducing::fold(call.op, call.type);
  call.count = mine.size();
  call.bytes = mine.size() * sizeof mine[0];
  call.send = mine.data();
  call.recv = all.data();
  reduce_by_leaders(hierarchy, call);
  if (call.op == reducing::Op::sum) all[0] /= float(hierarchy.size());
  return all;
}

}  // namespace

// The first call of a cell.
void HierarchyChooser::begin(const Hierarchy& hierarchy, const Call& call, Cell& cell) {
  struct Ranked {
    const HierarchyAlgorithm* row;
    int standing;
    double cost;
  };
  std::vector<Ranked> rows;
  const bool in_order = hierarchy.reproducible && depends_on_order(call);
  for (const HierarchyAlgorithm& row : rows_of(call.collective)) {
    if (!row.applies(hierarchy.shape(), call)) continue;
    int standing = choosing::standing(text_, call.collective, row.name);
    const bool orders = std::string_view(row.name) == "in-order";
    if (in_order && !orders) continue;
    if (!in_order && orders && standing < 2) standing = 0;
    if (!row.run && depends_on_order(call) && standing < 2) standing = 0;
    if (row.worth && !row.worth(hierarchy.shape(), call) && standing < 2) standing = 0;
    rows.push_back({&row, standing, row.cost(hierarchy.shape(), call)});
  }
  std::ranges::stable_sort(rows, [](const Ranked& a, const Ranked& b) {
    return a.standing != b.standing ? a.standing > b.standing : a.cost < b.cost;
  });
  cell.algorithm = rows[0].row;
  std::vector<const HierarchyAlgorithm*> candidates;
  for (const Ranked& each : rows) {
    const bool promises = each.standing == 2 || !each.row->run || each.cost <= hopeless * rows[0].cost;
    if (each.standing == rows[0].standing && each.standing > 0 && promises &&
        candidates.size() < Trials::most_candidates)
      candidates.push_back(each.row);
  }
  if (!tries_ || candidates.size() < 2) return;
  cell.trials = std::make_unique<Tried>(std::move(candidates), rows[0].cost, collectives::rooted(call.collective));
  cell.next_trial = cell.calls + (rows[0].cost < Tried::brief ? tuning::pace.first : 2);
}

void HierarchyChooser::report(const Hierarchy& hierarchy, const Call& call, const Tried& tried) const {
  if (hierarchy.rank() != 0) return;
  std::string text;
  for (const Candidate& candidate : tried.trials.candidates()) {
    char one[80];
    std::snprintf(one, sizeof one, ", %s %.2f us", tried.row(candidate)->name,
                  double(tried.trials.estimate(candidate)) / 1e3);
    text += one;
  }
  log_line(LogLevel::info, "%s of %zu bytes on %d ranks of %d nodes: %s (tried%s)", collectives::name(call.collective),
           call.bytes, hierarchy.size(), hierarchy.nodes(), tried.row(tried.trials.best())->name, text.c_str() + 1);
}

const HierarchyAlgorithm* HierarchyChooser::perform(Hierarchy& hierarchy, const Call& call, FunctionRef<void()> host) {
  Cell& cell = cells_->cell[std::size_t(call.collective)][choosing::size_class(call.bytes)][depends_on_order(call)];
  if (!cell.algorithm) [[unlikely]]
    begin(hierarchy, call, cell);
  ++cell.calls;
  if (!cell.trials || cell.calls < cell.next_trial || cell.trials->trials.decided()) {
    // Of a class of lengths the shorter ones may be too short for it.
    const HierarchyAlgorithm& row =
        cell.algorithm->applies(hierarchy.shape(), call) ? *cell.algorithm : rows_of(call.collective)[0];
    run(row, hierarchy, call, host);
    return row.run ? &row : nullptr;
  }
  Tried& tried = *cell.trials;
  const HierarchyAlgorithm& row = *tried.row(tried.trials.current());
  const std::uint64_t entered = waiting::nanoseconds();
  run(row, hierarchy, call, host);
  if (tried.trials.note({entered, waiting::nanoseconds()})) {
    tried.trials.end_block(agree(hierarchy, tried.trials));
    cell.algorithm = tried.row(tried.trials.best());
    if (tried.trials.decided()) report(hierarchy, call, tried);
    cell.next_trial = cell.calls + 1 + tried.trials.pause_calls();
  }
  return row.run ? &row : nullptr;
}

}  // namespace nearfield::hierarchy
