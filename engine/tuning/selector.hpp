// Selects the row that serves the calls of one cell: by estimates at first, then by trials in the program's own calls.
// It serves algorithms of a team (choosing/chooser.hpp) and over nodes (hierarchy/chooser.hpp), on which all members
// agree, and protocols of messages (messages/protocol_chooser.hpp), which the receiver chooses alone.
//
//   calls of a cell    are served by the incumbent; at first that is the row with the least estimate
//   trial              the incumbent and one challenger serve blocks of calls in turns, in at most Pace::rounds rounds
//   agreement          after each round the members exchange what they have seen, and all compute the same (of_all)
//   verdict            the challenger becomes the incumbent if the median of its blocks is clearly less; a trial ends
//                      early where the two are far apart
//   next trial         is that of the next challenger. It follows at once until each has had one, and then after so
//                      many calls that trials cost less than one percent; it notices what has changed meanwhile
//
// A call leaves lines in other caches, and the program has to fetch these when it comes back to its buffers. So the
// time between calls counts as well, if the program does little else in it. If it does more, an estimate from the
// machine's figures (machine/left_behind.hpp) counts instead.
//
// A decision depends only on what is equal on all members: numbers of calls, and figures that have been agreed on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/function_ref.hpp"

namespace nearfield::tuning {

// How trials are spread over calls; tests set another pace. With these rounds and the margins of selector.cpp, 95 % of
// 400 made-up cells with noise and outliers come to the right row (selector_test).
struct Pace {
  std::uint64_t first = 16;  // call of a cell with which the first trial begins
  unsigned rounds = 5;       // blocks of either row in a trial, at most
  std::uint64_t rest = 100;  // once each row has had a trial: calls outside of trials for each call in one
};
const Pace& pace() noexcept;

// A block has so many calls as take `block_time` ns by estimate, but at least `block_least` that count.
inline constexpr double block_time = 500e3, block_least = 2;

// The times in ns at which this member has entered and left a call, by its own clock.
struct Moment {
  std::uint64_t entered, left;
};

// What the calls of a block have taken, in ns per call.
struct Block {
  float inside = 0;   // within calls
  float between = 0;  // from a call to the next
};
struct Round {
  Block incumbent, challenger;
};

// Returns the round that counts for all members, given what each of them has seen. Its time inside calls is that of the
// member that came last (`least`), since the others also waited. In operations with a root, which members leave at
// different times, and among members that share CPUs, it is that of the member that was inside longest (`most`). The
// time of a whole call, up to the next one, is that of the slowest member.
enum class TimeInside : bool { least, most };
Round of_all(std::size_t members, TimeInside inside, FunctionRef<Round(std::size_t)> member);

// What trials have found of a row: the ns of a call; 0: the row could not run, or has not been tried.
struct Tried {
  const char* name;
  float nanoseconds;
};
// "a 1.20 us, b out of reach"
std::string describe(std::span<const Tried> rows);

class Selector {
 public:
  // `leaves`: for each row, the one with the least estimate first, the ns that a call adds to the time until the next
  // one, by the machine's figures. `calls`: number of calls of a block that count; one more before them does not.
  // `first`: number of the call of the cell with which the first trial begins.
  Selector(std::vector<float> leaves, unsigned calls, std::uint64_t first = pace().first);

  unsigned incumbent() const { return incumbent_; }
  // The row of call event(); all other calls go by the incumbent.
  unsigned current() const { return challenging_ ? challenger_ : incumbent_; }
  // Number of the next call that belongs to a trial; 0: there is none.
  std::uint64_t event() const { return event_; }
  bool in_block() const { return made_ > 0; }
  // Whether call event() ends a round, on which members have to agree.
  bool ends_round() const { return challenging_ && made_ == calls_; }
  // Whether each challenger has had a trial.
  bool settled() const { return trials_ + 1 >= rows_.size(); }

  // Notes that call event() is over. `ran`: its row could run. `at_once`: number of calls that it stands for. After a
  // round, agree() turns what this member has seen into what counts for all. Returns whether a trial is over.
  bool over(std::uint64_t call, bool ran, Moment moment, FunctionRef<Round(const Round&)> agree, unsigned at_once = 1);

  // The time before the next call of the block does not count.
  void interrupt() { interrupted_ = true; }

  unsigned rows() const { return unsigned(rows_.size()); }
  // ns of a call by that row in its latest trial; 0: there was none, or it could not run.
  float nanoseconds(unsigned row) const { return rows_[row].nanoseconds; }
  std::uint64_t calls() const { return tried_; }  // number of calls in trials so far
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
  unsigned made_ = 0;                                  // calls so far; the first one adds one, whatever it stands for
  std::uint64_t inside_ = 0, between_ = 0, last_ = 0;  // ns; when the last call was left
  std::int64_t longest_ = 0;  // longest time between calls, which may be another part of the program
  unsigned gaps_ = 0;
  Round mine_;
  // ---- the trial
  std::vector<Round> rounds_;
  std::uint64_t tried_ = 0;
  double beyond_ = 0;
};

}  // namespace nearfield::tuning
