// Finding out at run time which of some rows is the fastest for one cell, where every use costs enough for its time to
// be taken: algorithms of a team (choosing/chooser.hpp) and over nodes (hierarchy/chooser.hpp), protocols of messages
// (messages/protocol_chooser.hpp). Rows that cost little more than a look at the clock are sampled (samples.hpp).
//
//   calls of a cell    1 ..   the model's choice (or the best so far)
//   block              now and then a few calls of one candidate, the first of them not counted
//   agreement          after a block all who take part come to the same times (agreement.hpp)
//   sweep              a block of every candidate left; whoever is clearly slower drops out
//   decision           one candidate left, or the sweeps are over; from then on nothing is exchanged
//   watch              somebody times a call here and there; all try again when the cell is much slower or faster
//
// The estimate is the median of all times. What a row leaves behind is paid between calls: a rank that rewrites an
// array whose lines a peer has read has to fetch them back. So the time between calls is noted as well; between two
// candidates it counts where the lower half of one's blocks differs clearly from that of the other, which the program's
// own work rarely does. Where that work hides it, a part of what the machine's figures say is taken for it: who works
// between calls comes back to the buffers.
//
// Everything that decides is equal on all members: numbers of calls, and times that have been agreed on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/tuning/agreement.hpp"
#include "engine/tuning/back_off.hpp"

namespace nearfield::tuning {

// How trials are spread; tests use others.
struct Pace {
  std::uint64_t first = constants::trials_first;
  std::uint64_t apart = constants::trials_apart;
  unsigned sweeps = constants::sweeps;
  double enough = constants::trials_enough;
  std::uint64_t watch = constants::watch_every;
  std::uint64_t pause = std::uint64_t(constants::trials_pause);
  double price = constants::trials_price;
  std::uint64_t epoch = constants::watch_epoch;
};
const Pace& pace() noexcept;

struct Candidate {
  unsigned id = 0;               // what the owner of the trials knows it by
  std::vector<float> times{};    // ns of each call timed, of all members alike
  unsigned failures = 0;         // blocks in which it could not run
  bool left = true;              // in the trials
  std::vector<float> between{};  // ns per call between the calls of each block
  std::vector<float> whole{};    // ns per call of blocks with what lies between their calls
  float leaves = 0;              // ns that a call adds to that by the machine's figures
  float median() const;          // infinity without times
  float at_best() const;         // what it cannot be blamed for: the least of few times, the median of many
  float at_least() const;        // the same with what lies between its calls
};

// A row as trials have found it.
struct Tried {
  const char* name;
  float nanoseconds;  // of a call; 0: it could not run
};
// "a 1.20 us, b out of reach"
std::string describe(std::span<const Tried> rows);

class Trials {
 public:
  static constexpr unsigned most_candidates = constants::candidates_oversubscribed, most_timed = constants::block_timed;
  // Candidates 0 .. count - 1, the model's choice first. `estimate`: ns of a call; short ones are timed more often.
  // `together`: a block gives one time, not one per call. `timed`: calls of a block that count. `first`: the call of
  // the cell with which the first block begins.
  Trials(std::size_t count, double estimate, bool together, unsigned timed = most_timed,
         std::uint64_t first = pace().first);

  // By figures of the machine a call of each candidate adds so many ns to the time until the next one where programs
  // come back to their buffers: now, and the most of all in any state. What blocks do not tell is taken from these.
  void may_leave(std::span<const double> now, double most);

  bool decided() const { return decided_; }
  const Candidate& current() const { return candidates_[current_]; }
  std::span<const Candidate> candidates() const { return candidates_; }
  // ns of a call: the median, and what it clearly adds to or saves of the time between calls, by the best.
  float estimate(const Candidate& candidate) const;
  // The fastest so far; the first candidate as long as nothing is known.
  const Candidate& best() const { return candidates_[best_]; }

  // ---- schedule. The owner counts the calls of its cell.
  // The next call that belongs to a trial.
  std::uint64_t event() const { return event_; }
  bool tries(std::uint64_t call) const { return !decided_ && call >= event_; }
  // The current candidate's `call` is over, which ends so many `at_once`; `ran`: it could run. At the end of a block
  // agree() says what the block took. True: the block is over, and best() may be another one.
  template <class Agree>
  bool over(std::uint64_t call, bool ran, Moment moment, Agree agree, unsigned at_once = 1) {
    event_ = call + 1;
    if (!ran) {
      fail_block();
    } else if (note(moment, at_once)) {
      end_block(agree());
    } else {
      return false;
    }
    if (decided_) rest(moment.left);
    else event_ += pause_calls();
    return true;
  }
  // From the call behind `call` on all is tried again.
  void restart(std::uint64_t call);

  // ---- the parts of over()
  // A call of the current candidate is over, or so many `at_once`; whether the block is full.
  bool note(Moment moment, unsigned at_once = 1);
  bool ends_block() const { return in_block_ + 1 == block_calls(); }  // whether the next one fills it
  std::span<const Moment> block() const { return moments_; }
  std::span<const Moment> moments() const { return block().subspan(moments_.empty() ? 0 : 1); }  // that count
  // The block is over: what it took, of all members alike. Goes on to the next candidate.
  void end_block(const Agreed& agreed);
  void fail_block();

  // ---- the watch of a decided cell
  // Whether the latest time, in ns, shows that the cell has changed.
  bool changed(float time);
  // Whether it has, and may be tried again. The clock is that of whoever watches.
  bool due(float time, std::uint64_t now) { return changed(time) && now >= not_before_; }

  bool together() const { return together_; }
  unsigned restarts() const { return restarts_; }
  double spent() const { return spent_; }  // ns that trials took beyond the best
  unsigned tried_calls() const { return tried_calls_; }

 private:
  float behind(const Candidate& a, const Candidate& b) const;
  unsigned block_calls() const { return 1 + timed_; }
  std::uint64_t pause_calls() const;
  void rest(std::uint64_t now);
  void next();
  void rank();
  std::vector<Candidate> candidates_;
  std::vector<Moment> moments_;
  unsigned timed_, in_block_ = 0, current_ = 0, best_ = 0, sweep_ = 0;
  bool decided_ = false, together_;
  std::uint64_t event_;
  double spent_ = 0, timed_ns_ = 0;
  float leaves_now_ = 0, leaves_ = 0;  // ns by figures: the most of a candidate now, and in any state
  unsigned tried_calls_ = 0;
  std::vector<float> window_;
  float baseline_ = 0;
  unsigned strange_windows_ = 0, restarts_ = 0;
  std::uint64_t not_before_ = 0;  // ns
  BackOff pauses_;
};

// Trials of rows: what has a name and can be called for by others. The order is that of the ranking (ranking.hpp).
template <class Row>
struct Tuner : Trials {
  Tuner(std::vector<const Row*> promising, double estimate, bool together, unsigned timed = most_timed,
        std::uint64_t first = pace().first)
      : Trials(promising.size(), estimate, together, timed, first), rows(std::move(promising)) {}
  const Row* row(const Candidate& candidate) const { return rows[candidate.id]; }
  std::vector<Tried> tried() const {
    std::vector<Tried> found;
    for (const Candidate& each : candidates())
      found.push_back({row(each)->name, each.times.empty() ? 0 : Trials::estimate(each)});
    return found;
  }
  std::vector<const Row*> rows;
};

}  // namespace nearfield::tuning
