#include "engine/machine/states.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace nearfield::machine {
namespace {

// So few lines of many are no state: interruptions come one by one.
constexpr std::size_t strays = 8, one_in = 20;

struct Gap {
  double width;   // a factor
  double middle;  // ns
};

// The widest one, of sorted lines.
Gap widest_gap(std::span<const double> lines, std::size_t least) {
  Gap widest{1, 0};
  for (std::size_t at = least; at + least <= lines.size(); ++at) {
    const std::size_t left_out = std::min(at, lines.size() - at) / 10;
    const double below = lines[at - 1 - left_out], above = lines[at + left_out];
    if (above > widest.width * below) widest = {above / below, std::sqrt(below * above)};
  }
  return widest;
}

void split(std::span<const double> lines, std::size_t least, double border, std::vector<MachineState>& states) {
  if (const Gap gap = widest_gap(lines, least); gap.width >= alike) {
    const auto at = std::size_t(std::ranges::lower_bound(lines, gap.middle) - lines.begin());
    split(lines.first(at), least, gap.middle, states);
    split(lines.subspan(at), least, border, states);
    return;
  }
  const std::size_t left_out = lines.size() / 20;
  states.push_back(
      {lines[left_out], lines[lines.size() / 2], lines[lines.size() - 1 - left_out], border, lines.size()});
}

}  // namespace

std::vector<MachineState> find_states(std::vector<double> lines) {
  std::vector<MachineState> states;
  if (lines.empty()) return states;
  std::sort(lines.begin(), lines.end());
  const std::size_t least = std::clamp<std::size_t>(lines.size() / one_in, 1, strays);
  split(lines, least, std::numeric_limits<double>::infinity(), states);
  return states;
}

}  // namespace nearfield::machine
