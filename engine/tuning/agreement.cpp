#include "engine/tuning/agreement.hpp"

#include <algorithm>

namespace nearfield::tuning {
namespace {

float since(std::uint64_t begin, std::uint64_t end) {
  return float(std::max<std::int64_t>(1, std::int64_t(end - begin)));
}

}  // namespace

Agreed of_one(std::span<const Moment> calls) {
  Agreed agreed;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    agreed.times.push_back(since(calls[i].entered, calls[i].left));
    if (i > 0) agreed.between += float(calls[i].entered - calls[i - 1].left);
  }
  agreed.between /= float(std::max<std::size_t>(calls.size(), 2) - 1);
  return agreed;
}

Agreed of_all(int members, std::size_t calls, Timing timing, FunctionRef<Moment(int, std::size_t)> moment) {
  std::vector<Moment> last(calls);
  std::uint64_t outside = 0;  // the longest that a member was between calls, all of them together
  std::uint64_t first = ~std::uint64_t{0};
  for (int r = 0; r < members; ++r) {
    std::uint64_t pauses = 0;
    for (std::size_t i = 0; i < calls; ++i) {
      const Moment theirs = moment(r, i);
      last[i] = {std::max(last[i].entered, theirs.entered), std::max(last[i].left, theirs.left)};
      if (i > 0) pauses += theirs.entered - moment(r, i - 1).left;
      if (i == 1) first = std::min(first, theirs.entered);
    }
    outside = std::max(outside, pauses);
  }
  const std::size_t counted = calls - 1;
  if (timing == Timing::from_first_to_last)
    return {{since(first, last.back().left) / float(std::max<std::size_t>(counted, 1))}, 0};
  Agreed agreed{{}, float(outside) / float(std::max<std::size_t>(counted, 1))};
  if (timing == Timing::each) {
    for (std::size_t i = 1; i < calls; ++i) agreed.times.push_back(since(last[i].entered, last[i].left));
    return agreed;
  }
  std::int64_t longest = 1;
  for (int r = 0; r < members; ++r) {
    std::int64_t inside = 0;
    for (std::size_t i = 1; i < calls; ++i) {
      const Moment theirs = moment(r, i);
      inside +=
          std::int64_t(theirs.left) - std::int64_t(i > 1 ? theirs.entered : std::max(theirs.entered, last[1].entered));
    }
    longest = std::max(longest, inside);
  }
  agreed.times.push_back(float(longest) / float(counted));
  return agreed;
}

}  // namespace nearfield::tuning
