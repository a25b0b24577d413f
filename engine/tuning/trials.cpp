#include "engine/tuning/trials.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "engine/base/globals.hpp"
#include "engine/tuning/change.hpp"

namespace nearfield::tuning {
namespace {

float median_of(std::vector<float> values) {
  if (values.empty()) return std::numeric_limits<float>::infinity();
  const auto middle = values.begin() + std::ptrdiff_t((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The lower half of what blocks have had between their calls, in order: interruptions, other phases of the program, and
// memory touched for the first time only add to it.
std::vector<float> undisturbed(std::vector<float> between) {
  std::ranges::sort(between);
  between.resize(std::min(between.size(), between.size() / 2 + 1));
  return between;
}

}  // namespace

const Pace& pace() noexcept {
  static constexpr Pace usual;
  const Pace* const other = globals().pace.load(std::memory_order_relaxed);
  return other ? *other : usual;
}

float Candidate::median() const { return median_of(times); }

float Candidate::at_best() const {
  if (times.empty()) return 0;
  return times.size() < constants::enough_times ? *std::ranges::min_element(times) : median();
}

float Candidate::at_least() const {
  // A first block may have touched new memory between its calls, too.
  if (whole.size() > 1) return *std::ranges::min_element(whole);
  return at_best() + (between.size() > 1 ? *std::ranges::min_element(between) : 0);
}

std::string describe(std::span<const Tried> rows) {
  std::string text;
  for (const Tried& each : rows) {
    char one[80];
    if (each.nanoseconds == 0) std::snprintf(one, sizeof one, "%s out of reach", each.name);
    else std::snprintf(one, sizeof one, "%s %.2f us", each.name, double(each.nanoseconds) / 1e3);
    text += (text.empty() ? "" : ", ") + std::string(one);
  }
  return text;
}

Trials::Trials(std::size_t count, double estimate, bool together, unsigned timed, std::uint64_t first)
    : timed_(estimate < constants::long_call ? timed : 1), together_(together), event_(first) {
  for (unsigned id = 0; id < count; ++id) candidates_.push_back({id});
  decided_ = candidates_.size() < 2;
}

bool Trials::note(Moment moment, unsigned at_once) {
  ++tried_calls_;
  moments_.push_back(moment);
  in_block_ += moments_.size() > 1 ? at_once : 1;
  return in_block_ >= block_calls() && moments().size() >= std::min(timed_, most_timed);
}

void Trials::end_block(const Agreed& agreed) {
  const std::vector<float>& times = agreed.times;
  Candidate& now = candidates_[current_];
  now.times.insert(now.times.end(), times.begin(), times.end());
  now.between.push_back(agreed.between);
  if (agreed.whole > 0) now.whole.push_back(agreed.whole);
  rank();
  const Candidate& fastest = candidates_[best_];
  const float best = fastest.median();
  const float usual = fastest.whole.empty() ? best + median_of(fastest.between) : median_of(fastest.whole);
  const float calls = together_ ? float(timed_) : 1;
  for (const float time : times) {
    spent_ += std::max(0.0f, time - best) * calls;
    timed_ns_ += double(time) * calls;
  }
  constexpr float stay[] = {constants::stay_first, constants::stay_second, constants::stay_third,
                            constants::stay_later};
  const float limit = stay[std::min<std::size_t>(sweep_, std::size(stay) - 1)];
  for (Candidate& candidate : candidates_)
    if (candidate.times.size() > 1 && candidate.at_least() > limit * usual) candidate.left = false;
  next();
}

void Trials::may_leave(std::span<const double> now, double most) {
  for (std::size_t i = 0; i < now.size() && i < candidates_.size(); ++i) candidates_[i].leaves = float(now[i]);
  for (const Candidate& each : candidates_) leaves_now_ = std::max(leaves_now_, each.leaves);
  leaves_ = std::max(leaves_now_, float(most));
}

// ns that `a` adds beyond `b` to what their medians say: what figures say where it is not clear, because times of both
// overlap, or differ among themselves as much as from each other, or by more than a call can leave behind. What differs
// by little beside what a call leaves behind by the machine's figures shows whether it does.
float Trials::behind(const Candidate& a, const Candidate& b) const {
  const float assumed = float(constants::assumed_behind) * (a.leaves - b.leaves);
  const bool by_whole = !a.whole.empty() && !b.whole.empty();
  const auto its = undisturbed(by_whole ? a.whole : a.between), other = undisturbed(by_whole ? b.whole : b.between);
  if (its.size() < 2 || other.size() < 2 || its.size() + other.size() < constants::clear_blocks) return assumed;
  const float gap = std::max(its.front() - other.back(), other.front() - its.back());
  const float spread = std::max(its.back() - its.front(), other.back() - other.front());
  const float more = median_of(its) - median_of(other);
  const bool exact = spread < float(constants::exact_between) * leaves_now_;
  const bool clear = (exact || (gap > 0 && gap >= float(constants::clear_gap) * spread)) &&
                     std::abs(more) <= float(constants::clear_most) * std::max({a.median(), b.median(), leaves_});
  return !clear ? assumed : by_whole ? more - (a.median() - b.median()) : more;
}

float Trials::estimate(const Candidate& candidate) const { return candidate.median() + behind(candidate, best()); }

void Trials::fail_block() {
  if (++candidates_[current_].failures > 1) candidates_[current_].left = false;
  rank();
  next();
}

void Trials::rank() {
  best_ = 0;
  for (unsigned i = 1; i < candidates_.size(); ++i) {
    const Candidate &now = candidates_[i], &best = candidates_[best_];
    if (now.median() + behind(now, best) < (best_ == 0 ? float(constants::clearly_trials) : 1) * best.median())
      best_ = i;
  }
}

// The next candidate left, or the next sweep, or the decision.
void Trials::next() {
  in_block_ = 0;
  moments_.clear();
  const auto left = std::count_if(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.left; });
  do {
    if (++current_ == candidates_.size()) {
      current_ = 0;
      if (++sweep_ >= pace().sweeps || left <= 1) break;
    }
  } while (!candidates_[current_].left && left > 0);
  decided_ = sweep_ >= pace().sweeps || (left <= 1 && sweep_ > 0) ||
             (timed_ns_ > pace().enough && std::ranges::all_of(candidates_, [](const Candidate& each) {
                return !each.left || each.times.size() >= constants::enough_times;
              }));
}

// Not always as many calls: programs repeat themselves, and a candidate must not meet the same of their calls in every
// sweep.
std::uint64_t Trials::pause_calls() const {
  return (pace().apart - 1) * block_calls() + (tried_calls_ * 2654435761u >> 16) % 5;
}

void Trials::restart(std::uint64_t call) {
  for (Candidate& candidate : candidates_) candidate = {.id = candidate.id, .leaves = candidate.leaves};
  in_block_ = current_ = best_ = sweep_ = 0;
  timed_ns_ = 0;
  moments_.clear();
  window_.clear();
  baseline_ = 0;
  strange_windows_ = 0;
  ++restarts_;
  decided_ = candidates_.size() < 2;
  event_ = call + 1;
}

void Trials::rest(std::uint64_t now) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  not_before_ = now + std::max(pauses_.lengthen(pace().pause, most), std::uint64_t(pace().price * spent_));
}

bool Trials::changed(float time) {
  window_.push_back(time);
  if (window_.size() < constants::watch_window) return false;
  const float now = median_of(window_);
  window_.clear();
  if (baseline_ == 0) {
    baseline_ = now;
    return false;
  }
  strange_windows_ = differs(now, baseline_) ? strange_windows_ + 1 : 0;
  return strange_windows_ >= constants::watch_windows;
}

}  // namespace nearfield::tuning
