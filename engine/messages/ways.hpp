// Which way a large message takes where its sender's memory can be reached: by trials, as for algorithms.
//
// The receiver chooses the way, so it tries by itself, per sender and class of lengths: it times messages from their
// acceptance to their end. The next block begins when all messages of the last one are through.
#pragma once
#include <array>
#include <bit>
#include <memory>

#include "engine/choosing/trials.hpp"
#include "engine/messages/blocks.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::messages {

class Ways {
 public:
  struct Chosen {
    State way = State::direct;
    bool timed = false;  // then over() is told how long it took
  };
  // `cma`: whether that is a way for this message too.
  Chosen next(std::uint64_t bytes, bool cma) {
    auto& cell = cell_of(bytes);
    if (!cell) cell = std::make_unique<Cell>(cma ? 3 : 2, double(bytes) / 10);
    Cell& c = *cell;
    ++c.calls;
    const bool timed = c.trials.decided() ? c.calls % choosing::pace.watch == 0
                                          : c.calls >= c.event && c.issued < c.trials.block_calls();
    const State way = ways[(!c.trials.decided() && timed ? c.trials.current() : c.trials.best()).id];
    if (way == State::cma && !cma) return {State::direct, false};
    if (timed && !c.trials.decided()) ++c.issued;
    return {way, timed};
  }

  void over(std::uint64_t bytes, std::uint64_t nanoseconds) {
    const auto& cell = cell_of(bytes);
    if (!cell) return;
    Cell& c = *cell;
    if (c.trials.decided()) {
      if (!c.trials.due(float(nanoseconds), waiting::nanoseconds())) return;
      c.trials.restart();
      c.event = c.calls + 1;
      c.issued = 0;
    } else if (c.issued > 0 && c.trials.note({0, nanoseconds})) {
      std::array<float, choosing::Trials::most_timed> times;
      std::size_t n = 0;
      for (const auto& moment : c.trials.moments()) times[n++] = float(moment.left);
      c.trials.end_block({times.data(), n});
      c.issued = 0;
      c.event = c.calls + 1 + c.trials.pause_calls();
      if (c.trials.decided()) c.trials.rest(waiting::nanoseconds());
    }
  }

 private:
  static constexpr State ways[] = {State::direct, State::staged, State::cma};
  struct Cell {
    Cell(std::size_t candidates, double estimate) : trials(candidates, estimate, false) {}
    choosing::Trials trials;
    std::uint64_t calls = 0, event = choosing::pace.first;
    unsigned issued = 0;  // messages of the present block that have been accepted
  };
  std::unique_ptr<Cell>& cell_of(std::uint64_t bytes) {
    constexpr unsigned first = 12;  // classes below 4 KiB together
    const unsigned of_length = unsigned(std::bit_width(bytes - 1));
    return cell_[std::min<std::size_t>(of_length > first ? of_length - first : 0, cell_.size() - 1)];
  }
  std::array<std::unique_ptr<Cell>, 20> cell_;
};

}  // namespace nearfield::messages
