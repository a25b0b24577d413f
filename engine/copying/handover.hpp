// How bytes get to another core through a copy buffer: by which stores one core fills it, by which the other empties
// it.
//
// No pair of kinds is best everywhere: rep movsb is twice as fast as vector stores on one CPU and three times slower on
// the next, streaming stores win between cores without a common last-level cache and lose within one. Virtual CPUs
// move from one case to the other. So the kinds are tried, per peer and class of lengths: who fills measures how long
// it takes, is told how long the emptying took, and takes what costs least in all. It begins with what has been best
// for others; tries are spread, so that whoever times what is built on this sees few of them. Now and then another kind
// has another chance, and when the best one's cost has changed all are tried again.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/copying/copy.hpp"

namespace nearfield::copying {

struct Kinds {
  Store fill, drain;
};
inline constexpr std::array<Kinds, 4> handover_kinds{{{Store::vector, Store::vector},
                                                      {Store::claiming, Store::claiming},
                                                      {Store::claiming, Store::vector},
                                                      {Store::streaming, Store::vector}}};

class Handover {
 public:
  struct Choice {
    std::uint8_t kind = 0;  // of handover_kinds
    bool sample = false;    // its cost is to be told
  };

  Choice next(std::size_t bytes) {
    Cell& cell = cell_of(bytes);
    if (cell.uses++ == 0) cell.best = known_best(bytes).load(std::memory_order_relaxed);
    if (cell.tried < tries * handover_kinds.size()) {
      if (cell.uses % spread != 0) return {cell.best, false};
      return {std::uint8_t(cell.tried % handover_kinds.size()), true};
    }
    if (cell.uses % others_every == 0)
      return {std::uint8_t((cell.best + 1 + cell.uses / others_every % (handover_kinds.size() - 1)) %
                           handover_kinds.size()),
              true};
    return {cell.best, cell.uses % watch_every == 0};
  }

  // A sample of next() has cost so many ticks, by both sides.
  void note(std::uint8_t kind, std::size_t bytes, std::uint64_t ticks) {
    Cell& cell = cell_of(bytes);
    const float cost = float(ticks) / float(bytes);
    float& known = cell.cost[kind];
    if (cell.tried < tries * handover_kinds.size()) {
      // The first of each finds cold lines.
      if (cell.tried++ >= handover_kinds.size()) known = std::min(known, cost);
      cell.settle();
      if (cell.tried == tries * handover_kinds.size()) known_best(bytes).store(cell.best, std::memory_order_relaxed);
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
      known = std::min(cost, (known + cost) / 2);  // rarely seen: what is good now counts, and is soon known better
    }
    cell.settle();
  }

  std::uint8_t best(std::size_t bytes) const {
    const Cell& cell = cell_[class_of(bytes)];
    return cell.uses ? cell.best : known_best(bytes).load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned tries = 3, spread = 5, watch_every = 32, others_every = 128, patience = 4;
  static constexpr float change = 1.5f, clearly = 0.93f;
  struct Cell {
    std::array<float, handover_kinds.size()> cost{never(), never(), never(), never()};
    std::uint32_t uses = 0, tried = 0, strange = 0;
    std::uint8_t best = 0;
    static constexpr float never() { return std::numeric_limits<float>::max(); }
    void settle() {
      if (cost[best] == never()) return;  // what was best for others stays until it can be compared
      for (std::size_t k = 0; k < cost.size(); ++k)
        if (cost[k] < clearly * cost[best]) best = std::uint8_t(k);
    }
  };
  // Up to 4 KiB, 8, 16, more.
  static std::size_t class_of(std::size_t bytes) {
    return std::size_t(std::clamp(int(std::bit_width(bytes - 1)) - 12, 0, 3));
  }
  Cell& cell_of(std::size_t bytes) { return cell_[class_of(bytes)]; }
  // Of any peer of this process, the last one found.
  static std::atomic<std::uint8_t>& known_best(std::size_t bytes) {
    static std::atomic<std::uint8_t> best[4];
    return best[class_of(bytes)];
  }
  std::array<Cell, 4> cell_;
};

}  // namespace nearfield::copying
