#include "engine/tuning/selector.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/base/globals.hpp"

namespace nearfield::tuning {
namespace {

// The challenger takes the incumbent's place below this part of its time.
constexpr float clearly_won = 0.95f;
// A trial ends early where one of the two takes that many times as long as the other in each round.
constexpr float far_apart = 1.5f;
// The time between calls counts as long as it is no more than `dense` times that of the calls themselves. Of at least
// `gaps_without_longest` gaps the longest does not count: it may be another part of the program.
constexpr float dense = 4;
constexpr unsigned gaps_without_longest = 4;

float median(std::span<const Round> rounds, Block Round::*row, float Block::*part) {
  std::vector<float> values;
  for (const Round& each : rounds) values.push_back(each.*row.*part);
  const auto middle = values.begin() + std::ptrdiff_t((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Block median(std::span<const Round> rounds, Block Round::*row) {
  return {median(rounds, row, &Block::inside), median(rounds, row, &Block::between)};
}

}  // namespace

const Pace& pace() noexcept {
  static constexpr Pace usual;
  const Pace* const other = globals().pace.load(std::memory_order_relaxed);
  return other ? *other : usual;
}

Round of_all(std::size_t members, TimeInside inside, FunctionRef<Round(std::size_t)> member) {
  Round all = member(0);
  const auto join = [&](Block& block, const Block& theirs) {
    const float whole = std::max(block.inside + block.between, theirs.inside + theirs.between);
    block.inside =
        inside == TimeInside::least ? std::min(block.inside, theirs.inside) : std::max(block.inside, theirs.inside);
    block.between = whole - block.inside;
  };
  for (std::size_t i = 1; i < members; ++i) {
    const Round theirs = member(i);
    join(all.incumbent, theirs.incumbent);
    join(all.challenger, theirs.challenger);
  }
  return all;
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

Selector::Selector(std::vector<float> leaves, unsigned calls, std::uint64_t first)
    : calls_(std::max(calls, 1u)), event_(leaves.size() > 1 ? std::max<std::uint64_t>(first, 1) : 0) {
  for (const float each : leaves) rows_.push_back({each});
}

bool Selector::over(std::uint64_t call, bool ran, Moment moment, FunctionRef<Round(const Round&)> agree,
                    unsigned at_once) {
  event_ = call + 1;
  ++tried_;
  if (challenging_ && !ran) {
    rows_[challenger_].nanoseconds = 0;
    if (rounds_.empty()) rows_[incumbent_].nanoseconds = mine_.incumbent.inside;
    end_trial(call, false);
    return true;
  }
  if (made_ == 0) {
    inside_ = between_ = longest_ = gaps_ = 0;
    made_ = 1;
  } else {
    inside_ += moment.left - moment.entered;
    const std::uint64_t gap = interrupted_ ? 0 : moment.entered - last_;
    between_ += gap;
    longest_ = std::max(std::int64_t(gap), longest_);
    ++gaps_;
    made_ += at_once;
  }
  last_ = moment.left;
  interrupted_ = false;
  if (made_ <= calls_) return false;
  end_block(challenging_ ? mine_.challenger : mine_.incumbent);
  // Programs repeat themselves. The distance between blocks varies, so that a row does not serve the same of their
  // calls in every block.
  event_ += (tried_ * 2654435761u >> 16) % 5;
  challenging_ = !challenging_;
  if (challenging_) return false;
  rounds_.push_back(agree(mine_));
  return judge(call);
}

void Selector::end_block(Block& block) {
  const auto calls = float(made_ - 1);
  block = {float(std::int64_t(inside_)) / calls, float(std::int64_t(between_)) / calls};
  if (gaps_ >= gaps_without_longest)
    block.between = (block.between - float(longest_) / calls) * float(gaps_) / float(gaps_ - 1);
  made_ = 0;
}

// Returns whether the trial is over.
bool Selector::judge(std::uint64_t call) {
  const Block now = median(rounds_, &Round::incumbent), other = median(rounds_, &Round::challenger);
  const bool counts = now.between + other.between <= dense * (now.inside + other.inside);
  Row &incumbent = rows_[incumbent_], &challenger = rows_[challenger_];
  const auto cost = [&](const Block& block, const Row& row) {
    return block.inside + (counts ? block.between : row.leaves);
  };
  const float its = cost(now, incumbent), theirs = cost(other, challenger);
  // Now and then a call takes many times as long, which may decide a single round, or two in favour of the challenger.
  const auto in_each = [&](std::size_t rounds, auto holds) {
    return rounds_.size() >= rounds && std::ranges::all_of(rounds_, [&](const Round& each) {
             return holds(cost(each.incumbent, incumbent), cost(each.challenger, challenger));
           });
  };
  const bool decided = in_each(2, [&](float, float other) { return other > far_apart * its; }) ||
                       in_each(3, [](float own, float other) { return other * far_apart < own; });
  if (rounds_.size() < pace().rounds && !decided) return false;
  const float common = std::min(counts ? now.between : incumbent.leaves, its - 1);
  incumbent.nanoseconds = its - common;
  challenger.nanoseconds = std::max(theirs - common, 1.0f);
  beyond_ += std::max(0.0, double(theirs - its)) * calls_ * double(rounds_.size());
  end_trial(call, theirs < clearly_won * its);
  return true;
}

void Selector::end_trial(std::uint64_t call, bool changes) {
  if (changes) incumbent_ = challenger_;
  do challenger_ = (challenger_ + 1) % unsigned(rows_.size());
  while (challenger_ == incumbent_);
  challenging_ = false;
  made_ = 0;
  rounds_.clear();
  ++trials_;
  if (settled()) event_ = call + 1 + pace().rest * 2 * pace().rounds * (1 + calls_);
}

}  // namespace nearfield::tuning
