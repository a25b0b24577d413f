// Sorts the rows that may run a call by the user's override and then by estimate, so that the first one is the choice
// without a trial. Picks the rows that are worth a trial.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace nearfield::tuning {

// Whether an override lets a row be used.
enum class Standing : std::uint8_t { excluded, allowed, forced };

template <class Row>
struct Ranked {
  const Row* row;
  Standing standing;
  double cost;  // estimated nanoseconds
  // Whether a row is tried that the override does not force. near_best: if its estimate is near the best one.
  enum Tried : std::uint8_t { never, near_best, always } tried = near_best;
};

// Sorts `rows`, the best first; rows of equal cost keep their order. Returns those that are worth a trial, `most` at
// most. They have the first one's standing and are forced, or tried always, or near_best: their estimate is at most
// `hopeless` times the first one's. pre: there is a row.
template <class Row>
std::vector<const Row*> rank(std::vector<Ranked<Row>>& rows, double hopeless, std::size_t most) {
  std::ranges::stable_sort(rows, [](const Ranked<Row>& a, const Ranked<Row>& b) {
    return a.standing != b.standing ? a.standing > b.standing : a.cost < b.cost;
  });
  std::vector<const Row*> worth;
  for (const Ranked<Row>& each : rows) {
    if (each.standing != rows[0].standing || each.standing == Standing::excluded) break;
    const bool promises = each.tried == Ranked<Row>::always ||
                          (each.tried == Ranked<Row>::near_best && each.cost <= hopeless * rows[0].cost);
    if ((promises || each.standing == Standing::forced) && worth.size() < most) worth.push_back(each.row);
  }
  return worth;
}

}  // namespace nearfield::tuning
