// Finds the cheapest of some rows, namely kinds of stores, of which a single use costs little more than reading the
// clock. One process decides alone, and never stops sampling.
//
//   first uses    one in `samples_apart` is a sample: it is timed, and samples go by each row in turn. The first of a
//                 row does not count. All other uses go by the row that is best for other peers.
//                 A row is judged by its second-lowest time: one time may be short by chance, since the other side
//                 came late, and any number may be long, since other processes had the CPU
//   then          uses go by the best row; now and then it is timed, and now and then another row is
//   a change      if the best row's cost changes and stays so, all rows are tried again
//
// Where lines lie after a use depends on the kind: streamed lines are in no cache, and the next use seems cheap by any
// kind. So if short buffers are handed out in turn, each kind has some of them that no other kind fills. Samples of
// these buffers count from the second turn on.
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

inline constexpr unsigned samples_each = 5;         // first samples of a kind; the very first does not count
inline constexpr unsigned samples_apart = 5;        // one use in so many; sixteen in a row spoiled trials of algorithms
inline constexpr unsigned samples_of_best = 32;     // afterwards one use of the best kind in so many is timed
inline constexpr unsigned samples_of_others = 128;  // afterwards one use in so many goes by another kind
inline constexpr unsigned samples_changed = 4;      // so many in a row that differ: all kinds are tried again
inline constexpr float samples_weight = 0.125f;     // of a later sample; samples spread by half of their median
inline constexpr std::size_t buffers_apart = 32;    // from one buffer of a kind's own to the next, in buffers
inline constexpr float clearly_better = 0.93f;      // a kind below this part of the best one's cost replaces it

// Returns whether the difference is a change rather than noise.
inline bool differs(float now, float known) {
  constexpr float factor = 1.5f;
  return now > factor * known || now * factor < known;
}

// Rows has the number of its `family` (Globals::best_row) and of its `kinds`. Its groups of lengths are those up to
// 2^first and `count` - 1 classes beyond. `kind` replaces `than` if it costs less than the part clearly(kind, than,
// group) of it. One use of the best kind in watch_every(group) is timed. Up to `in_own_buffers` bytes kinds have
// buffers of their own.
template <class Rows>
class Samples {
 public:
  struct Choice {
    std::uint8_t kind = 0;  // below Rows::kinds
    bool sample = false;    // the caller has to time it and to call note()
  };

  // `at`: offset in bytes of the buffer to be filled among those that are handed out in turn; 0: it is none of those.
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

  // Takes the result of a sample: the ticks of all processes that took part, added up.
  void note(std::uint8_t kind, std::size_t bytes, std::uint64_t ticks) {
    Cell& cell = cell_[bytes];
    const float cost = float(ticks) / float(bytes);
    float& known = cell.cost[kind];
    if (cell.tried < tries()) {
      // The first sample of each kind finds cold lines.
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

  // Sets the best kind until there are samples.
  static void expect(std::uint8_t kind) {
    for (auto& best : globals().best_row[Rows::family]) best.store(kind, std::memory_order_relaxed);
  }
  // Returns the kind that was found best last in this process. Any thread.
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
    std::array<float, kinds> least;  // the lowest of the first samples that count
    std::uint32_t uses = 0, tried = 0, strange = 0;
    std::uint8_t best = 0, turns = 0;
    std::size_t last = 0;  // `at` of the last use
    void settle(std::size_t group) {
      if (cost[best] == never) return;  // keep the best of other peers until it can be compared
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
