#include "engine/hierarchy/placement.hpp"

#include <algorithm>

namespace nearfield::hierarchy {

Placement::Placement(std::span<const int> home) : node_of_(home.size()), local_of_(home.size()), ranks_(home.size()) {
  std::vector<int> homes, count;
  for (std::size_t r = 0; r < home.size(); ++r) {
    const auto known = std::ranges::find(homes, home[r]);
    const auto node = std::size_t(known - homes.begin());
    if (known == homes.end()) {
      homes.push_back(home[r]);
      count.push_back(0);
    }
    node_of_[r] = int(node);
    local_of_[r] = count[node]++;
  }
  first_.assign(homes.size() + 1, 0);
  for (std::size_t node = 0; node < homes.size(); ++node) {
    first_[node + 1] = first_[node] + count[node];
    most_ = std::max(most_, count[node]);
    least_ = node ? std::min(least_, count[node]) : count[node];
    equal_ &= count[node] == count[0];
  }
  striped_ = equal_;
  for (int r = 0; r < size(); ++r) {
    const int at = first_[std::size_t(node_of(r))] + local_of(r);
    ranks_[std::size_t(at)] = r;
    blocks_ &= at == r;
    striped_ &= r == local_of(r) * nodes() + node_of(r);
  }
}

}  // namespace nearfield::hierarchy
