// What may run a call, in the order in which it would be chosen without a trial: by what the user says of it, then by
// its estimate. And which of that is worth a trial.
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
  // Of a row that is not forced: whether it is tried; if near the best, by its estimate.
  enum Tried : std::uint8_t { never, near_best, always } tried = near_best;
};

// Sorts `rows`, the best first; rows of equal cost keep their order. Returns those that are worth a trial, `most` at
// most: all of the first one's standing but for those that are estimated at more than `hopeless` times its cost.
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
