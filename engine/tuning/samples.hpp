// Which row costs least where a use costs little more than a look at the clock: kinds of stores. One process decides
// alone, and goes on to find out.
//
//   first uses    one of some is timed, of each row in turn, the first of each not counted; else the best of others
//   then          the best; it is timed now and then, and now and then another row has another chance
//   a change      of the best row's cost that stays: all are tried again
//
// No kind of stores is best everywhere: rep movsb is twice as fast as vector stores on one CPU and three times slower
// on the next, streaming stores win between cores without a common last-level cache and lose within one. Virtual CPUs
// move from one case to the other.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>

#include "engine/base/globals.hpp"
#include "engine/tuning/change.hpp"
#include "engine/tuning/lengths.hpp"

namespace nearfield::tuning {

// Rows: the number of their `family` (Globals::best_row); how many `kinds`; for lengths up to 2^first and `count` - 1
// classes beyond, `clearly(kind, than, group)`, the part of the cost of `than` at which a kind is better, and
// `watch_every(group)`.
template <class Rows>
class Samples {
 public:
  // `kinds`: of those, the first.
  explicit Samples(std::size_t kinds = Rows::kinds) : kinds_(kinds) {}
  struct Choice {
    std::uint8_t kind = 0;  // below Rows::kinds
    bool sample = false;    // its cost is to be reported
  };

  Choice next(std::size_t bytes) {
    Cell& cell = cell_[bytes];
    if (cell.uses++ == 0) cell.best = best_elsewhere(bytes);
    if (cell.tried < tries()) {
      if (cell.uses % constants::samples_apart != 0) return {cell.best, false};
      return {std::uint8_t(cell.tried % kinds_), true};
    }
    constexpr auto others = constants::samples_of_others;
    if (cell.uses % others == 0 && kinds_ > 1)
      return {std::uint8_t((cell.best + 1 + cell.uses / others % (kinds_ - 1)) % kinds_), true};
    return {cell.best, cell.uses % Rows::watch_every(cell_.class_of(bytes)) == 0};
  }

  // A sample of next() has cost so many ticks, by all that take part.
  void note(std::uint8_t kind, std::size_t bytes, std::uint64_t ticks) {
    Cell& cell = cell_[bytes];
    const float cost = float(ticks) / float(bytes);
    float& known = cell.cost[kind];
    if (cell.tried < tries()) {
      // The first of each finds cold lines.
      if (cell.tried++ >= kinds_) known = std::min(known, cost);
      cell.settle(cell_.class_of(bytes));
      if (cell.tried == tries()) best_of_all(bytes).store(cell.best, std::memory_order_relaxed);
      return;
    }
    if (kind != cell.best) {
      known = std::min(cost, (known + cost) / 2);  // rarely seen: what is good now counts, and is soon known better
    } else if (!differs(cost, known)) {
      cell.strange = 0;
      known += (cost - known) / 4;
    } else if (++cell.strange >= constants::samples_changed) {
      cell = Cell{};
      return;
    }
    cell.settle(cell_.class_of(bytes));
  }

  // What has been best in this process, from any thread.
  static std::uint8_t best_elsewhere(std::size_t bytes) { return best_of_all(bytes).load(std::memory_order_relaxed); }

  std::uint8_t best(std::size_t bytes) const {
    const Cell& cell = cell_[bytes];
    return cell.uses ? cell.best : best_elsewhere(bytes);
  }

 private:
  static constexpr std::size_t kinds = Rows::kinds;
  std::size_t tries() const { return constants::samples_each * kinds_; }
  static constexpr float never = std::numeric_limits<float>::max();
  struct Cell {
    Cell() { cost.fill(never); }
    std::array<float, kinds> cost;  // ticks per byte
    std::uint32_t uses = 0, tried = 0, strange = 0;
    std::uint8_t best = 0;
    void settle(std::size_t group) {
      if (cost[best] == never) return;  // what was best for others stays until it can be compared
      for (std::size_t k = 0; k < kinds; ++k)
        if (cost[k] < Rows::clearly(k, best, group) * cost[best]) best = std::uint8_t(k);
    }
  };
  using Cells = ByLength<Cell, Rows::first, Rows::count>;
  static std::atomic<std::uint8_t>& best_of_all(std::size_t bytes) {
    static_assert(Rows::family < Globals::row_families && Rows::count <= Globals::length_classes);
    return globals().best_row[Rows::family][Cells::class_of(bytes)];
  }
  std::size_t kinds_;
  Cells cell_;
};

}  // namespace nearfield::tuning
