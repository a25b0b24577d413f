// Chooses the protocol of large messages whose sender's memory can be reached (tuning/selector.hpp). A cell is a class
// of lengths of messages from one sender; those whose memory only CMA reaches have cells of their own.
//
// The receiver chooses, for each cell. It times bursts: one begins when a message of the cell is accepted while no
// other is under way, and ends when none is under way. All messages of a burst go by one protocol.
//
// In a ping-pong the time of a message includes that of the other direction, whose receiver may have a trial as well.
// So the two processes of a pair take turns by the clock: each begins blocks of a trial only in its own slices of time.
//
// Where copy buffers have won, the receiver advises the sender to fill them without asking. The sender asks again after
// some messages (Offers), so that the receiver can look again. A message whose sender may compute takes no part in
// trials: its receiver copies what it can reach, and advises the sender by what trials, or else the figures, say.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/messages/blocks.hpp"
#include "engine/tuning/lengths.hpp"
#include "engine/tuning/selector.hpp"

namespace nearfield::messages {

// One class for lengths up to 4 KiB, then one for each power of two.
template <class Cell>
using ByMessageLength = tuning::ByLength<Cell, 12, 20>;

// Number of messages that go through copy buffers without asking, once these have won, before one asks again.
inline constexpr unsigned unasked = 64;
// Messages that a timed burst has at most.
inline constexpr unsigned longest_burst = 128;

class ProtocolChooser {
 public:
  struct Chosen {
    State way = State::direct;
    bool timed = false;    // then over() is told when it was accepted and when it was through
    bool advised = false;  // the next ones need not ask
  };
  // Estimates for the first message of a cell, in ns.
  struct Estimate {
    double one_copy;
    double leaves = 0;          // time that one copy costs the program later, when it writes to its buffer again
    bool staged_first = false;  // two copies should take less than one copy and what it leaves
  };
  // `by_calls`: whether CMA can copy this message; true if it is not `mapped`. `attended`: whether its sender waits for
  // it. `turn`: whether a block may begin.
  Chosen next(std::uint64_t bytes, bool by_calls, Estimate estimate, bool attended = true, bool turn = true,
              bool mapped = true) {
    auto& cell = cell_[mapped][bytes];
    if (!cell) cell = std::make_unique<Cell>(mapped, mapped && by_calls ? 3 : 2, estimate);
    Cell& c = *cell;
    const tuning::Selector& selector = c.selector;
    c.calls += c.stands_for;
    if (c.open++ == 0) {
      c.timed = c.calls >= selector.event() && (turn || selector.in_block());
      c.accepted = c.began = ~std::uint64_t{0};
      c.burst = 0;
    }
    // A burst that does not end, or has a message that takes no part in trials, is not timed.
    if (++c.burst > longest_burst || !attended) c.timed = false;
    const bool known = selector.settled() || !attended;
    const bool advised = known && !c.timed && c.ways[selector.incumbent()] == State::staged;
    c.stands_for = advised ? unasked : 1;
    if (!attended) return {mapped ? State::direct : State::by_calls, false, advised};
    const State way = c.ways[c.timed ? selector.current() : selector.incumbent()];
    if (way == State::by_calls && !by_calls) return {State::direct};
    return {way, c.timed, advised};
  }

  // Called when a message of next() is complete. `moment.entered`: 0: it was not timed. `asked`: ns that it waited for
  // its sender's answer, a wait that copy buffers will not have once they have won. Returns whether each protocol of
  // the cell has now been tried.
  bool over(std::uint64_t bytes, tuning::Moment moment, std::uint64_t asked = 0, bool mapped = true) {
    const auto& cell = cell_[mapped][bytes];
    if (!cell) return false;
    Cell& c = *cell;
    if (!moment.entered) {
      c.timed = false;
    } else {
      c.accepted = std::min(c.accepted, moment.entered);
      c.began = std::min(c.began, moment.entered + asked);
    }
    if (--c.open) return false;
    if (!c.timed) {
      c.selector.interrupt();
      return false;
    }
    // Time that messages wait for answers does not count.
    moment.entered = c.accepted - c.asked;
    moment.left -= c.asked += c.began - c.accepted;
    const bool settled = c.selector.settled();
    c.selector.over(c.calls, true, moment, [](const tuning::Round& mine) { return mine; }, c.burst);
    return !settled && c.selector.settled();
  }

  // pre: over() has returned true. `name`: returns a protocol's name.
  std::string describe(std::uint64_t bytes, bool mapped, const char* (*name)(State)) const {
    const Cell& c = *cell_[mapped][bytes];
    std::vector<tuning::Tried> tried;
    for (unsigned i = 0; i < c.selector.rows(); ++i) tried.push_back({name(c.ways[i]), c.selector.nanoseconds(i)});
    return std::string(name(c.ways[c.selector.incumbent()])) + " (tried " + tuning::describe(tried) + ")";
  }

 private:
  static constexpr State all[] = {State::direct, State::staged, State::by_calls};
  static constexpr State staged_before_direct[] = {State::staged, State::direct, State::by_calls};
  struct Cell {
    Cell(bool mapped, std::size_t candidates, const Estimate& estimate)
        : ways(!mapped                 ? all + 1
               : estimate.staged_first ? staged_before_direct
                                       : all),
          selector(leaves(candidates, estimate), messages(estimate.one_copy)) {}
    std::vector<float> leaves(std::size_t candidates, const Estimate& estimate) const {
      std::vector<float> each;
      for (std::size_t i = 0; i < candidates; ++i)
        each.push_back(ways[i] == State::staged ? 0 : float(estimate.leaves));
      return each;
    }
    // Zen 4, 64 KiB to and fro: with at most 32 messages in a block 17 of 18 jobs choose right, with 16 7 of 10.
    static unsigned messages(double one_copy) {
      return unsigned(std::clamp(tuning::block_time / one_copy, tuning::block_least, 32.0));
    }
    const State* const ways;
    tuning::Selector selector;
    std::uint64_t calls = 0;
    unsigned stands_for = 1;                // what the next message adds to `calls`: those before it did not ask
    std::uint64_t accepted = 0, began = 0;  // ns: when the burst's first message was accepted, and when copied
    std::uint64_t asked = 0;                // what messages have waited for answers so far, ns
    unsigned open = 0;                      // messages under way
    unsigned burst = 0;                     // messages of the burst so far
    bool timed = false;                     // the burst is timed
  };
  ByMessageLength<std::unique_ptr<Cell>> cell_[2];  // by calls alone, mapped
};

// The sender's side, per receiver: counts messages that go through copy buffers without an offer.
class Offers {
 public:
  // Returns whether the next message of that length makes no offer. Where its sender may compute, the receiver copies
  // an offered message, so there are fewer offers.
  bool skip(std::uint64_t bytes, bool attended = true) {
    std::uint8_t& left = left_[bytes];
    if (!left) return false;
    left -= attended || ++skipped_ % 8 == 0;
    return true;
  }
  void advised(std::uint64_t bytes) { left_[bytes] = std::uint8_t(unasked); }

 private:
  ByMessageLength<std::uint8_t> left_;
  unsigned skipped_ = 0;
};

}  // namespace nearfield::messages
