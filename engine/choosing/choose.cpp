#include "engine/choosing/choose.hpp"

#include <algorithm>
#include <vector>

#include "engine/collectives/costs.hpp"
#include "engine/machine/left_behind.hpp"

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

}  // namespace

tuning::Standing standing(std::string_view override_text, Collective collective, std::string_view algorithm) {
  auto result = tuning::Standing::allowed;
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    if (sentence.collective != collectives::name(collective)) continue;
    for (auto name : sentence.names) {
      const bool excluded = name.front() == '^';
      if (excluded) name.remove_prefix(1);
      if (name == algorithm) result = excluded ? tuning::Standing::excluded : tuning::Standing::forced;
    }
  }
  return result;
}

std::string complain_about(std::string_view override_text, MoreNames more) {
  for (const auto part : split(override_text, ';')) {
    const Sentence sentence = parse(part);
    std::string names;
    const auto which = collectives::collective_named(sentence.collective);
    if (!which) {
      for (std::size_t c = 0; c < collectives::collective_count; ++c)
        names += (c ? ", " : "") + std::string(collectives::name(Collective(c)));
      return "\"" + std::string(sentence.collective) + "\" is not a collective; there are " + names;
    }
    std::vector<std::string_view> there;
    for (const auto& row : collectives::algorithms(*which)) there.emplace_back(row.name);
    if (more)
      for (const auto name : more(*which))
        if (std::ranges::find(there, name) == there.end()) there.push_back(name);
    for (const auto name : there) names += (names.empty() ? "" : ", ") + std::string(name);
    if (sentence.names.empty())
      return "\"" + std::string(part) + "\" names no algorithm; " + std::string(sentence.collective) + " has " + names;
    std::size_t excluded = 0;
    for (auto name : sentence.names) {
      if (name.front() == '^') {
        name.remove_prefix(1);
        ++excluded;
      }
      if (std::ranges::find(there, name) == there.end())
        return "\"" + std::string(name) + "\" is not an algorithm of " + std::string(sentence.collective) +
               "; there are " + names;
    }
    if (excluded >= there.size())
      return "\"" + std::string(part) + "\" leaves no algorithm of " + std::string(sentence.collective);
  }
  return {};
}

using collectives::Call;

namespace {

// Bytes of one member whose lines a row leaves with peers, and all that it touches.
struct Touched {
  double taken = 0, all = 0;
};
Touched touched_by(const team::Shape& s, const Algorithm& row, const Call& call) {
  if (row.reach == collectives::staged || s.oversubscribed()) return {};
  const double others = s.size - 1, n = collectives::in_bytes(call);
  const collectives::Operation& op = collectives::operation(call.collective);
  const auto gives = double(op.gives.each(s.size)), gets = double(op.gets.each(s.size));
  const bool each_reads_a_part = op.gives.amount == collectives::Amount::blocks || op.reduces();
  return {row.taken * (each_reads_a_part ? gives * n * others / s.size : n), (gives + gets) * n};
}

using Ranked = tuning::Ranked<Algorithm>;

// Of the best estimate: rows beyond that are not tried. The model's median error is 38 to 75 % at 2 ranks on four
// processors, 134 % at 2 to 16 ranks of a Xeon, 127 % at 32 ranks on 2 CPUs.
double hopeless(const team::Shape& shape) { return shape.oversubscribed() ? 4 : shape.size > 2 ? 3 : 2; }

// Rows that apply, with what they cost and leave behind.
std::vector<Ranked> estimate(const team::Shape& shape, std::string_view override_text, const Call& call) {
  std::vector<Ranked> rows;
  for (const Algorithm& row : collectives::algorithms(call.collective)) {
    if (!row.applies(shape, call)) continue;
    const bool worth = (!row.share || shape.oversubscribed()) && (!row.worth || row.worth(shape, call));
    rows.push_back({&row, standing(override_text, call.collective, row.name),
                    row.cost(shape, call) + left_behind(shape, row, call), worth ? Ranked::near_best : Ranked::never});
  }
  return rows;
}

// Puts the best of those rows first among the challengers that go another way than the incumbent, between user buffers
// or through copy buffers: estimates err most there, since the members' state decides, and orders of an exchange differ
// little.
void put_other_way_first(std::vector<const Algorithm*>& worth) {
  const auto is_staged = [](const Algorithm* row) { return row->reach == collectives::staged; };
  const auto other =
      std::ranges::find_if(worth, [&](const Algorithm* row) { return is_staged(row) != is_staged(worth[0]); });
  if (other != worth.end()) std::rotate(worth.begin() + 1, other, other + 1);
  worth.resize(std::min(worth.size(), candidates));
}

// Whether members that are in one state may come into another: those of several caches stay where they are.
bool may_move(const team::Shape& shape) { return shape.machine.near == 0 && !shape.oversubscribed(); }

// Adds rows that another known state of the members favours.
void add_from_other_states(std::vector<const Algorithm*>& worth, const team::Shape& shape,
                           std::string_view override_text, const Call& call) {
  if (!may_move(shape)) return;
  team::Shape moved = shape;
  for (const PairCosts& state : shape.states) {
    if (state.line <= 0 || like(state.line, shape.machine.near_pair.line)) continue;
    moved.machine.near_pair = state;
    moved.machine.line = state.line;
    std::vector<Ranked> rows = estimate(moved, override_text, call);
    for (const Algorithm* row : tuning::rank(rows, hopeless(moved), rows.size()))
      if (std::ranges::find(worth, row) == worth.end()) worth.push_back(row);
  }
}

}  // namespace

double left_behind(const team::Shape& s, const Algorithm& row, const Call& call) {
  const Touched touched = touched_by(s, row, call);
  const auto of = [&](bool far) { return machine::left_behind(s.machine.pair(far), s.states, s.machine, touched.all); };
  const double far = double(s.size - s.group_size()) / std::max(s.size - 1, 1);
  return touched.taken * (of(false) * (1 - far) + of(true) * far);
}

Chosen choose(const team::Shape& shape, std::string_view override_text, const Call& call) {
  Chosen chosen;
  std::vector<Ranked> rows = estimate(shape, override_text, call);
  if (rows.empty()) return chosen;
  chosen.promising = tuning::rank(rows, hopeless(shape), rows.size());
  const auto staged = std::ranges::find(rows, collectives::staged, [](const Ranked& each) { return each.row->reach; });
  if (staged != rows.end()) chosen.staged = staged->row;
  const Ranked& best = chosen.promising.empty() ? rows[0] : *std::ranges::find(rows, chosen.promising[0], &Ranked::row);
  chosen.best = best.row;
  chosen.cost = best.cost;
  chosen.forced = best.standing == tuning::Standing::forced;
  add_from_other_states(chosen.promising, shape, override_text, call);
  put_other_way_first(chosen.promising);
  return chosen;
}

}  // namespace nearfield::choosing
