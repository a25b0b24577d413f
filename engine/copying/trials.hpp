// Trials that find the fastest kind of stores while the program runs.
//
// No kind is best everywhere: rep movsb is twice as fast as vector stores on one CPU and three times slower on the
// next, streaming stores win between cores without a common last-level cache and lose within one. Virtual CPUs move
// from one case to the other. So the kinds are tried, by classes of lengths, and the fastest is taken. It begins with
// the kind that has been best for other peers; tries are spread, so that they hardly disturb timings of whole
// operations. Now and then another kind is tried once more, and when the best one's cost has changed all are tried
// again.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace nearfield::copying {

// `Cells` has `kinds`, their number; `clearly(kind, than, group)`, the fraction of the cost of `than` below which a
// kind counts as better, in class `group`; `count`, the number of classes, of which the first is below 2^(first + step)
// and each next one 2^step times as long.
template <class Cells>
class StoreTrials {
 public:
  struct Choice {
    std::uint8_t kind = 0;  // below Cells::kinds
    bool sample = false;    // the caller passes its cost to note()
  };

  Choice next(std::size_t bytes) {
    Cell& cell = cell_of(bytes);
    if (cell.uses++ == 0) cell.best = known_best(bytes).load(std::memory_order_relaxed);
    if (cell.tried < tries * kinds) {
      if (cell.uses % spread != 0) return {cell.best, false};
      return {std::uint8_t(cell.tried % kinds), true};
    }
    if (cell.uses % others_every == 0)
      return {std::uint8_t((cell.best + 1 + cell.uses / others_every % (kinds - 1)) % kinds), true};
    return {cell.best, cell.uses % Cells::watch_every(class_of(bytes)) == 0};
  }

  // Notes that a sample of next() has taken so many ticks, of all processes that take part.
  void note(std::uint8_t kind, std::size_t bytes, std::uint64_t ticks) {
    Cell& cell = cell_of(bytes);
    const float cost = float(ticks) / float(bytes);
    float& known = cell.cost[kind];
    if (cell.tried < tries * kinds) {
      // The first try of each kind finds cold lines.
      if (cell.tried++ >= kinds) known = std::min(known, cost);
      cell.settle(class_of(bytes));
      if (cell.tried == tries * kinds) known_best(bytes).store(cell.best, std::memory_order_relaxed);
      return;
    }
    if (kind == cell.best) {
      const bool strange = cost > change * known || cost * change < known;
      cell.strange = strange ? cell.strange + 1 : 0;
      if (cell.strange >= patience) {
        cell = Cell{};
        return;
      }
      if (!strange) known += (cost - known) / 4;
    } else {
      known = std::min(cost, (known + cost) / 2);  // rarely tried, so the new cost counts more
    }
    cell.settle(class_of(bytes));
  }

  // Returns the kind that has been best in this process. Any thread.
  static std::uint8_t best_elsewhere(std::size_t bytes) { return known_best(bytes).load(std::memory_order_relaxed); }

  std::uint8_t best(std::size_t bytes) const {
    const Cell& cell = cell_[class_of(bytes)];
    return cell.uses ? cell.best : known_best(bytes).load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned tries = 3, spread = 5, others_every = 128, patience = 4;
  static constexpr std::size_t kinds = Cells::kinds;
  static constexpr float change = 1.5f;
  struct Cell {
    Cell() { cost.fill(never()); }
    std::array<float, kinds> cost;
    std::uint32_t uses = 0, tried = 0, strange = 0;
    std::uint8_t best = 0;
    static constexpr float never() { return std::numeric_limits<float>::max(); }
    void settle(std::size_t group) {
      if (cost[best] == never()) return;  // the best of other peers stays until it can be compared
      for (std::size_t k = 0; k < cost.size(); ++k)
        if (cost[k] < Cells::clearly(k, best, group) * cost[best]) best = std::uint8_t(k);
    }
  };
  static std::size_t class_of(std::size_t bytes) {
    return std::size_t(
        std::clamp((int(std::bit_width(bytes - 1)) - Cells::first) / Cells::step, 0, int(Cells::count) - 1));
  }
  Cell& cell_of(std::size_t bytes) { return cell_[class_of(bytes)]; }
  // The last best kind of any peer of this process.
  static std::atomic<std::uint8_t>& known_best(std::size_t bytes) {
    static std::atomic<std::uint8_t> best[Cells::count];
    return best[class_of(bytes)];
  }
  std::array<Cell, Cells::count> cell_;
};

}  // namespace nearfield::copying
