// Finding out at run time which of some candidates is the fastest for one cell: of collectives, the algorithms for one
// team, collective and class of lengths (choose.cpp); of messages, the ways for one sender and class of lengths
// (messages/ways.hpp), where the receiver is the only member.
//
//   calls of a cell    1 ..   the model's choice (or the best so far)
//   block              now and then a few calls of one candidate, the first of them not counted
//   agreement          after a block all members tell when they entered and left each call (a small collective)
//   sweep              a block of every candidate left; whoever is clearly slower drops out
//   decision           one candidate left, or the sweeps are over; from then on nothing is exchanged
//   watch              the first member times a call here and there; when the cell has become much slower or faster, it
//                      names a call in the future from which on all try again (choosing/chooser.hpp,
//                      ChooserControlBlock::revisit)
//
// A call takes from the last member's entry to the last member's leaving, by the clock that all processes share:
// members that come late in the program do not count against an algorithm. Operations with a root let members run ahead
// of each other, so theirs are timed together: the member that was longest in all calls of a block, from the last
// member's entry into the first of them. The estimate is the median of all times.
//
// What an algorithm leaves behind is paid between calls: a rank that rewrites an array whose lines a peer has read has
// to fetch them back. So the time between calls is noted as well; between two candidates it counts where the lower
// half of one's blocks differs clearly from that of the other, which the program's own work rarely does.
// Everything that decides is equal on all members: numbers of calls, and times that have been exchanged.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace nearfield::tuning {

// How trials are spread; tests use others.
struct Pace {
  std::uint64_t first = 16;             // calls before the first block
  std::uint64_t apart = 1;              // one in so many calls is part of a trial, and some more between two blocks
  unsigned sweeps = 4;                  // at most
  double enough = 20e6;                 // ns of calls that have been timed, once some of each candidate have
  std::uint64_t watch = 64;             // one in so many calls is timed after the decision
  std::uint64_t pause = 1'000'000'000;  // ns between a decision and the next trials, at least
  double price = 100;                   // and times what the last trials took beyond the best
  std::uint64_t epoch = 1024;  // calls between two looks for a revisit; more than any member is ahead of another
};
extern Pace pace;

struct Candidate {
  unsigned id = 0;               // what the owner of the trials knows it by
  std::vector<float> times{};    // ns of each call timed, of all members alike
  unsigned failures = 0;         // blocks in which it could not run
  bool left = true;              // in the trials
  std::vector<float> between{};  // ns per call between the calls of each block
  float median() const;          // infinity without times
  float at_best() const;         // what it cannot be blamed for: the least of few times, the median of many
};

class Trials {
 public:
  static constexpr unsigned most_candidates = 6, most_timed = 2;
  // Candidates 0 .. count - 1, the model's choice first. `estimate`: ns of a call; short ones are timed more often.
  // `together`: a block gives one time, not one per call. `timed`: calls of a block that count.
  Trials(std::size_t count, double estimate, bool together, unsigned timed = most_timed);

  bool decided() const { return decided_; }
  const Candidate& current() const { return candidates_[current_]; }
  std::span<const Candidate> candidates() const { return candidates_; }
  // ns of a call: the median, and what it clearly adds to or saves of the time between calls, by the best.
  float estimate(const Candidate& candidate) const;
  // The fastest so far; the first candidate as long as nothing is known.
  const Candidate& best() const { return candidates_[best_]; }

  // A call of the current candidate is over; whether the block is full.
  struct Moment {
    std::uint64_t entered, left;
  };
  bool note(Moment moment);
  bool ends_block() const { return in_block_ + 1 == block_calls(); }  // whether the next one fills it
  std::span<const Moment> block() const { return moments_; }
  std::span<const Moment> moments() const { return block().subspan(moments_.empty() ? 0 : 1); }  // that count
  // The block is over: times of its calls, of all members alike. Goes on to the next candidate.
  void end_block(std::span<const float> times, float between = 0);
  void fail_block();
  void restart();

  // The decided cell's watch: whether the latest time, in ns, shows that the cell has changed.
  bool changed(float time);
  // Whether it has, and may be tried again. The clock is that of whoever watches; the pause doubles each time.
  bool due(float time, std::uint64_t now) { return changed(time) && now >= not_before_; }
  void rest(std::uint64_t now);
  bool together() const { return together_; }
  unsigned block_calls() const { return 1 + timed_; }
  // Calls between a block and the next, not always as many: programs repeat themselves, and a candidate must not meet
  // the same of their calls in every sweep.
  std::uint64_t pause_calls() const {
    return (pace.apart - 1) * block_calls() + (tried_calls_ * 2654435761u >> 16) % 5;
  }
  unsigned restarts() const { return restarts_; }
  double spent() const { return spent_; }  // ns that trials took beyond the best
  unsigned tried_calls() const { return tried_calls_; }

 private:
  void next();
  void rank();
  std::vector<Candidate> candidates_;
  std::vector<Moment> moments_;
  unsigned timed_, in_block_ = 0, current_ = 0, best_ = 0, sweep_ = 0;
  bool decided_ = false, together_;
  double spent_ = 0, timed_ns_ = 0;
  unsigned tried_calls_ = 0;
  std::vector<float> window_;
  float baseline_ = 0;
  unsigned strange_windows_ = 0, restarts_ = 0;
  std::uint64_t not_before_ = 0, rest_ = pace.pause;  // ns
};

}  // namespace nearfield::tuning
