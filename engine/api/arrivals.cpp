#include "engine/api/arrivals.hpp"

namespace nearfield::api {

Arrivals::Arrivals(const team::Team& team, const std::vector<std::uint64_t>& offsets) : me_(team.rank()) {
  for (int r = 0; r < team.size(); ++r)
    words_.push_back(reinterpret_cast<ArrivalControlBlock*>(team.segment_of(r) + offsets[std::size_t(r)]));
}

std::vector<int> Arrivals::missing(std::uint64_t call) const {
  std::vector<int> found;
  for (std::size_t r = 0; r < words_.size(); ++r)
    if (int(r) != me_ && words_[r]->calls.load(std::memory_order_relaxed) < call) found.push_back(int(r));
  return found;
}

}  // namespace nearfield::api
