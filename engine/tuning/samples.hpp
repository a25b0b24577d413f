// Which row costs least where a use costs little more than a look at the clock: kinds of stores. One process decides
// alone, and goes on to find out.
//
//   first uses    one of some is timed, of each row in turn, the first of each not counted; else the best of others.
//                 A row is judged by its second-lowest time: one is short by luck, where the other side
//                 came late, and any number are long, since others had the CPU
//   then          the best; it is timed now and then, and now and then another row has another chance
//   a change      of the best row's cost that stays: all are tried again
//
// Kinds leave memory behind in their own ways: lines that were streamed are in no cache, and seem cheap to whoever
// fills them next, by whatever kind. So of short buffers that are handed out in turn each kind has a few that no other
// fills, and what counts is what it takes there from the second turn on.
//
// No kind of stores is best everywhere: rep movsb is twice as fast as vector stores on one CPU and three times slower
// on the next, streaming stores win between cores without a common last-level cache and lose within one. Virtual CPUs
// move from one case to the other.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/globals.hpp"
#include "engine/tuning/lengths.hpp"

namespace nearfield::tuning {

inline constexpr unsigned samples_each = 5;         // of a kind, of which the first does not count
inline constexpr unsigned samples_apart = 5;        // one use in so many; sixteen in a row spoiled trials of algorithms
inline constexpr unsigned samples_of_best = 32;     // afterwards: one use of the best kind in so many
inline constexpr unsigned samples_of_others = 128;  // one use in so many goes by another kind
inline constexpr unsigned samples_changed = 4;      // in a row that differ: all kinds are tried again
inline constexpr float samples_weight = 0.125f;     // of a later sample; they spread by half of their median
inline constexpr std::size_t buffers_apart = 32;    // two buffers of one kind
inline constexpr float clearly_better = 0.93f;      // of the best kind's cost: below that another one is taken

// Whether that is a change, rather than noise.
inline bool differs(float now, float known) {
  constexpr float factor = 1.5f;
  return now > factor * known || now * factor < known;
}

// Rows: the number of their `family` (Globals::best_row); how many `kinds`; for lengths up to 2^first and `count` - 1
// classes beyond, `clearly(kind, than, group)`, the part of the cost of `than` at which a kind is better,
// `watch_every(group)`, and up to which length kinds have buffers of their own, `in_own_buffers`.
template <class Rows>
class Samples {
 public:
  struct Choice {
    std::uint8_t kind = 0;  // below Rows::kinds
    bool sample = false;    // its cost is to be reported
  };

  // `at`: where the memory lies that is filled, among what is handed out in turn; 0: elsewhere.
  Choice next(std::size_t bytes, std::size_t at = 0) {
    Cell& cell = cell_[bytes];
    if (cell.uses++ == 0) cell.best = best_elsewhere(bytes);
    if (bytes <= Rows::in_own_buffers) return next_of_buffers(cell, bytes, at);
    if (cell.tried < tries()) {
      if (cell.uses % samples_apart != 0) return {cell.best, false};
      return {std::uint8_t(cell.tried % kinds), true};
    }
    if (cell.uses % samples_of_others == 0)
      return {std::uint8_t((cell.best + 1 + cell.uses / samples_of_others % (kinds - 1)) % kinds), true};
    return {cell.best, cell.uses % Rows::watch_every(cell_.class_of(bytes)) == 0};
  }

  // A sample of next() has cost so many ticks, by all that take part.
  void note(std::uint8_t kind, std::size_t bytes, std::uint64_t ticks) {
    Cell& cell = cell_[bytes];
    const float cost = float(ticks) / float(bytes);
    float& known = cell.cost[kind];
    if (cell.tried < tries()) {
      // The first of each finds cold lines.
      if (cell.tried++ >= kinds) {
        float& least = cell.least[kind];
        known = std::min(known, std::max(least, cost));
        least = std::min(least, cost);
      }
      cell.settle(cell_.class_of(bytes));
      if (cell.tried == tries()) best_of_all(bytes).store(cell.best, std::memory_order_relaxed);
      return;
    }
    if (known == never) {
      known = cost;
    } else if (kind != cell.best) {
      known += (std::min(cost, 2 * known) - known) * samples_weight;
    } else if (!differs(cost, known)) {
      cell.strange = 0;
      known += (cost - known) * samples_weight;
    } else if (++cell.strange >= samples_changed) {
      cell = Cell{};
      return;
    }
    cell.settle(cell_.class_of(bytes));
  }

  // What is best until there are samples.
  static void expect(std::uint8_t kind) {
    for (auto& best : globals().best_row[Rows::family]) best.store(kind, std::memory_order_relaxed);
  }
  // What has been best in this process, from any thread.
  static std::uint8_t best_elsewhere(std::size_t bytes) { return best_of_all(bytes).load(std::memory_order_relaxed); }

  std::uint8_t best(std::size_t bytes) const {
    const Cell& cell = cell_[bytes];
    return cell.uses ? cell.best : best_elsewhere(bytes);
  }

 private:
  struct Cell;
  Choice next_of_buffers(Cell& cell, std::size_t bytes, std::size_t at) const {
    constexpr std::size_t apart = buffers_apart;
    if (at == 0) return {cell.best, false};
    const std::size_t group = cell_.class_of(bytes);
    const std::size_t number = at >> (Rows::first + group);  // of a buffer
    cell.turns += at < std::exchange(cell.last, at) && cell.turns < 2;
    if (number % apart == 0) return {std::uint8_t(number / apart % kinds), cell.turns > 1};
    return {cell.best, cell.tried == tries() && cell.uses % Rows::watch_every(group) == 0};
  }

  static constexpr std::size_t kinds = Rows::kinds;
  static constexpr std::size_t tries() { return samples_each * kinds; }
  static constexpr float never = std::numeric_limits<float>::max();
  struct Cell {
    Cell() {
      cost.fill(never);
      least.fill(never);
    }
    std::array<float, kinds> cost;   // ticks per byte
    std::array<float, kinds> least;  // that counted in the first uses
    std::uint32_t uses = 0, tried = 0, strange = 0;
    std::uint8_t best = 0, turns = 0;
    std::size_t last = 0;  // where the last one was
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
  Cells cell_;
};

}  // namespace nearfield::tuning
