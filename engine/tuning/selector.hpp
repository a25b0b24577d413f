// Which row serves the calls of one cell. Estimates say at first, measurements of the program's own calls correct them:
// algorithms of a team (choosing/chooser.hpp) and over nodes (hierarchy/chooser.hpp), on which all members agree, and
// protocols of messages (messages/protocol_chooser.hpp), which the receiver chooses alone.
//
//   calls of a cell    1 ..      by the incumbent; at first that is the row with the least estimate
//   trial              blocks of calls by the incumbent and by one challenger in turns, `rounds` of both at most
//   agreement          after each round all members come to the same figures (of_all)
//   verdict            the challenger becomes the incumbent if the median of its blocks is clearly less; a trial ends
//                      early where the two are far apart
//   next trial         with the next challenger: at once until each has had one, and from then on after a fixed number
//                      of calls, which keeps the price of looking again below one percent and notices what has changed
//
// A call leaves lines behind that the program has to fetch when it comes back to its buffers. So the time between calls
// counts as well, where the program does little else between them; where it does, what the machine's figures say
// (machine/left_behind.hpp) is taken instead.
//
// Everything that decides is equal on all members: numbers of calls, and figures that have been agreed on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/function_ref.hpp"

namespace nearfield::tuning {

// How trials are spread; tests use others. Of 400 made-up cells with noise and outliers 95 % come to the right row with
// that many rounds and the margins of selector.cpp (selector_test).
struct Pace {
  std::uint64_t first = 16;  // call of a cell with which the first trial begins
  unsigned rounds = 5;       // blocks of either row in a trial, at most
  std::uint64_t rest = 100;  // calls without a trial for each call of one, once each row has had one
};
const Pace& pace() noexcept;

// Of a block: what its calls take together, ns, at most, and how many of them count, at least.
inline constexpr double block_time = 500e3, block_least = 2;

// ns at which a call was entered and left, by a clock of the member's own.
struct Moment {
  std::uint64_t entered, left;
};

// What the calls of a block have taken, in ns per call.
struct Block {
  float inside = 0;   // the calls
  float between = 0;  // what lies between them
};
struct Round {
  Block incumbent, challenger;
};

// A round as all members see it, made of what each has seen. Of the time inside a call that of the member that came
// last counts (`least`); in operations with a root, which members leave at different times, and among members that
// share CPUs, that of the one that was in it longest. A whole call, with the time until the next one, takes as long as
// the slowest member's.
enum class TimeInside : bool { least, most };
Round of_all(std::size_t members, TimeInside inside, FunctionRef<Round(std::size_t)> member);

// A row as trials have found it; ns of a call, 0: it could not run, or has not been tried.
struct Tried {
  const char* name;
  float nanoseconds;
};
// "a 1.20 us, b out of reach"
std::string describe(std::span<const Tried> rows);

class Selector {
 public:
  // `leaves`: for each row, the least estimate first, the ns that one of its calls adds to the time until the next one
  // by the machine's figures. `calls`: of a block, beside the first one, which does not count. `first`: the call of the
  // cell with which the first trial begins.
  Selector(std::vector<float> leaves, unsigned calls, std::uint64_t first = pace().first);

  unsigned incumbent() const { return incumbent_; }
  // By which row call event() goes; the others go by the incumbent.
  unsigned current() const { return challenging_ ? challenger_ : incumbent_; }
  // The next call that belongs to a trial; 0: none will.
  std::uint64_t event() const { return event_; }
  bool in_block() const { return made_ > 0; }
  // Whether call event() ends a round, on which members have to agree.
  bool ends_round() const { return challenging_ && made_ == calls_; }
  // Whether each challenger has had a trial.
  bool settled() const { return trials_ + 1 >= rows_.size(); }

  // Call event(), which may stand for several at once, is over; `ran`: its row could run. After a round `agree` makes
  // what this member has seen into what all have. Returns whether a trial is over.
  bool over(std::uint64_t call, bool ran, Moment moment, FunctionRef<Round(const Round&)> agree, unsigned at_once = 1);

  // What comes before the next call of the block is no part of it.
  void interrupt() { interrupted_ = true; }

  unsigned rows() const { return unsigned(rows_.size()); }
  // ns of a call by that row in its latest trial; 0: there was none, or it could not run.
  float nanoseconds(unsigned row) const { return rows_[row].nanoseconds; }
  std::uint64_t calls() const { return tried_; }  // of trials so far
  double beyond() const { return beyond_; }       // ns that challengers took beyond incumbents

 private:
  struct Row {
    float leaves, nanoseconds = 0;
  };
  void end_block(Block& block);
  bool judge(std::uint64_t call);
  void end_trial(std::uint64_t call, bool changes);

  std::vector<Row> rows_;
  const unsigned calls_;
  std::uint64_t event_;
  unsigned incumbent_ = 0, challenger_ = 1, trials_ = 0;
  // ---- the block
  bool challenging_ = false, interrupted_ = false;
  unsigned made_ = 0;                                  // calls, the first of which counts as one
  std::uint64_t inside_ = 0, between_ = 0, last_ = 0;  // ns; when the last call was left
  std::int64_t longest_ = 0;                           // of what lies between, which may be another part of the program
  unsigned gaps_ = 0;
  Round mine_;
  // ---- the trial
  std::vector<Round> rounds_;
  std::uint64_t tried_ = 0;
  double beyond_ = 0;
};

}  // namespace nearfield::tuning
