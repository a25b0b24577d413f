// Counts the collective calls of each member of a group, so that a call that times out can name the members that have
// not come.
//
//   member    begins its n-th collective call, of any form:  calls = n (relaxed: nothing is published by it)
//   others    whose call n has waited too long:              members whose calls < n have not come
#pragma once
#include <cstdint>
#include <vector>

#include "engine/team/team.hpp"

namespace nearfield::api {

struct ArrivalControlBlock {
  alignas(team::line) Atomic<std::uint64_t> calls;  // owner: collective calls that it has begun
};

class Arrivals {
 public:
  // `offsets`: offset of each member's control block in its segment.
  Arrivals(const team::Team& team, const std::vector<std::uint64_t>& offsets);
  // Local. Counts our next call and returns its number.
  std::uint64_t begin() {
    words_[std::size_t(me_)]->calls.store(++begun_, std::memory_order_relaxed);
    return begun_;
  }
  // Returns the ranks that have not begun that call, in order.
  std::vector<int> missing(std::uint64_t call) const;

 private:
  const int me_;
  std::uint64_t begun_ = 0;
  std::vector<ArrivalControlBlock*> words_;
};

}  // namespace nearfield::api
