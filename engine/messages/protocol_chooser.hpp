// Which way a large message takes where its sender's memory can be reached: by trials (tuning/trials.hpp). Memory that
// calls of the kernel alone can reach has cells of its own.
//
// The receiver chooses the way, so it tries by itself, per sender and class of lengths: it times bursts, from the
// acceptance of a message when no other of the cell is under way until none is. All of a burst go one way, and its time
// is divided by their number. What ways leave behind (a sender that writes to its buffer again fetches back the lines
// that the receiver has read) is paid between them, and a burst through copy buffers holds what its sender does
// meanwhile. So blocks are long, and what counts is all of their time, from the end of the first burst on.
//
// A message whose sender may compute meanwhile is tried as well, unless some senders were asked in vain.
// Once that is decided its receiver copies it, and copy buffers serve the next ones, whose sender fills them when it
// sends.
//
// In a ping-pong that time is also the other way's, whose receiver may try ways as well. So the two of a pair take
// turns by the clock: each begins blocks in slices of its own.
//
// Once copy buffers have won, the receiver advises the sender to fill them without waiting to be asked. Now and then
// the sender offers the choice again (Offers), so that the receiver sees when the cell has changed.
#pragma once
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/messages/blocks.hpp"
#include "engine/tuning/lengths.hpp"
#include "engine/tuning/trials.hpp"

namespace nearfield::messages {

// Lengths up to 4 KiB together, then one class each.
template <class Cell>
using ByMessageLength = tuning::ByLength<Cell, 12, 20>;

class ProtocolChooser {
 public:
  struct Chosen {
    State way = State::direct;
    bool timed = false;    // then over() is told when it was accepted and when it was through
    bool advised = false;  // the next ones need not ask
  };
  // What the first message of a cell is told; ns.
  struct Estimate {
    double one_copy;
    // What it leaves behind where programs write to their buffers again: now, and in any state of the machine.
    double leaves_now = 0, leaves = 0;
    bool staged_first = false;  // two copies should take less with that
  };
  // Whether messages are tried whose sender does not wait for them: until some were in no call when they were asked,
  // since they compute.
  bool tries_unattended(std::uint64_t bytes) const { return in_vain_[bytes] < tuning::constants::slow_answers; }
  // The receiver has waited for its answer, and then copied the message alone.
  void asked_in_vain(std::uint64_t bytes) { in_vain_[bytes] += tries_unattended(bytes); }

  // `by_calls`: whether that is a way for this message too; it has to be where it is not `mapped`. `attended`: whether
  // its sender waits for it. `turn`: whether a block may begin.
  Chosen next(std::uint64_t bytes, bool by_calls, Estimate estimate, bool attended = true, bool turn = true,
              bool mapped = true) {
    auto& cell = cell_[mapped][bytes];
    if (!cell) cell = std::make_unique<Cell>(mapped, mapped && by_calls ? 3 : 2, estimate);
    Cell& c = *cell;
    const State* const ways = c.ways;
    ++c.calls;
    const bool decided = c.trials.decided(), advised = decided && ways[c.trials.best().id] == State::staged;
    if (c.open++ == 0) {
      c.timed = decided ? advised || watches(c) : c.trials.tries(c.calls) && (turn || c.in_block);
      c.in_block |= c.timed && !decided;
      c.accepted = c.began = ~std::uint64_t{0};
      c.burst = 0;
    }
    if (++c.burst > tuning::constants::longest_burst) c.timed = false;  // one that does not end tells nothing
    const bool tried = c.timed && !decided;
    if (!attended && !tried) {
      c.timed = false;  // another way than the others of its burst, perhaps
      return {mapped ? State::direct : State::by_calls, false, advised};
    }
    // Not what is best so far: that may be known without what it leaves behind, and spoils the trials of the other
    // direction.
    const State way = ways[tried ? c.trials.current().id : decided ? c.trials.best().id : 0];
    if (way == State::by_calls && !by_calls) return {State::direct};
    return {way, c.timed, advised};
  }

  // Every message that next() has chosen for is through; `moment.entered`: 0 where it was not timed; `asked`: for so
  // many ns it waited for its sender's answer, which will not be asked once copy buffers have won. Returns whether that
  // has decided its cell.
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
      c.mixed = true;
      return false;
    }
    // By a clock that stands still while they wait for answers.
    moment.entered = c.accepted - c.asked;
    moment.left -= c.asked += c.began - c.accepted;
    if (!c.trials.decided()) {
      c.bursts.push_back(float(c.burst));
      if (c.bursts.size() == 1) c.mixed = false;
      if (c.trials.over(c.calls, true, moment, [&] { return c.of_one_message(); }, c.burst)) {
        c.in_block = false;
        c.bursts.clear();
      }
      return c.trials.decided();
    }
    const float each = float(moment.left - moment.entered) / float(c.burst);
    if (c.trials.due(each, moment.left)) c.trials.restart(c.calls);
    return false;
  }

  // pre: over() has said that it is decided. `name`: of a way.
  std::string describe(std::uint64_t bytes, bool mapped, const char* (*name)(State)) const {
    const Cell& c = *cell_[mapped][bytes];
    std::vector<tuning::Tried> tried;
    for (const auto& each : c.trials.candidates())
      tried.push_back({name(c.ways[each.id]), each.times.empty() ? 0 : c.trials.estimate(each)});
    return std::string(name(c.ways[c.trials.best().id])) + " (tried " + tuning::describe(tried) + ")";
  }

 private:
  static constexpr State all[] = {State::direct, State::staged, State::by_calls};
  static constexpr State staged_before_direct[] = {State::staged, State::direct, State::by_calls};
  struct Cell {
    Cell(bool mapped, std::size_t candidates, const Estimate& estimate)
        : trials(candidates, estimate.one_copy, false, messages_timed(estimate.one_copy)),
          ways(!mapped                 ? all + 1
               : estimate.staged_first ? staged_before_direct
                                       : all) {
      double now[std::size(all)];
      for (std::size_t i = 0; i < std::size(all); ++i) now[i] = ways[i] == State::staged ? 0 : estimate.leaves_now;
      trials.may_leave(std::span(now).first(candidates), estimate.leaves);
    }
    static unsigned messages_timed(double one_copy) {
      const double most = tuning::constants::long_block / one_copy;
      return unsigned(std::clamp<double>(most, tuning::Trials::most_timed, tuning::constants::messages_timed));
    }
    tuning::Agreed of_one_message() const {
      tuning::Agreed agreed = tuning::of_one(trials.moments());
      for (std::size_t i = 0; i < agreed.times.size(); ++i) agreed.times[i] /= bursts[1 + i];
      const float messages = std::accumulate(bursts.begin() + 1, bursts.end(), 0.0f);
      agreed.between *= float(agreed.times.size()) / messages;
      if (!mixed) agreed.whole = whole(messages);
      return agreed;
    }
    // Of long blocks without the longest way from burst to burst, where the program may have done something else.
    float whole(float messages) const {
      const auto block = trials.block();
      auto time = float(block.back().left - block.front().left);
      if (block.size() <= 1 + tuning::constants::whole_without_longest) return time / messages;
      float longest = 0, its = 0;
      for (std::size_t i = 1; i < block.size(); ++i) {
        const auto period = float(block[i].left - block[i - 1].left);
        if (period > longest) longest = period, its = bursts[i];
      }
      return (time - longest) / (messages - its);
    }
    tuning::Trials trials;
    const State* const ways;
    std::uint64_t calls = 0;
    std::uint64_t watched = 0;              // turn of the watch
    std::uint64_t accepted = 0, began = 0;  // when the first message of the burst was, and was first copied; ns
    std::uint64_t asked = 0;                // what messages have waited for answers so far, ns
    unsigned open = 0;                      // messages under way
    unsigned burst = 0;                     // messages of it so far
    bool timed = false;                     // it is
    bool in_block = false;
    bool mixed = false;           // others lie between the bursts of the block
    std::vector<float> bursts{};  // messages of those of the block
  };
  ByMessageLength<std::uint8_t> in_vain_;
  // One in so many messages, whichever it is that begins a burst.
  static bool watches(Cell& c) {
    const std::uint64_t turn = c.calls / tuning::pace().watch;
    return std::exchange(c.watched, turn) != turn;
  }
  ByMessageLength<std::unique_ptr<Cell>> cell_[2];  // by calls alone, mapped
};

// The sender's side, per receiver: messages that do not offer the choice any more.
class Offers {
 public:
  // Whether the next message of that length is staged without asking. Where its sender may compute, an offer is copied
  // by the receiver, so there are fewer.
  bool skip(std::uint64_t bytes, bool mapped, bool attended = true) {
    std::uint8_t& left = left_[mapped][bytes];
    if (!left) return false;
    left -= attended || ++skipped_ % unsigned(tuning::constants::fewer_offers) == 0;
    return true;
  }
  void advised(std::uint64_t bytes, bool mapped) { left_[mapped][bytes] = std::uint8_t(tuning::pace().watch); }

 private:
  ByMessageLength<std::uint8_t> left_[2];
  unsigned skipped_ = 0;
};

}  // namespace nearfield::messages
