// Who has come to which collective call of a group: a word of each member, which tells a call that waits in vain whom
// it lacks.
//
//   member    begins its n-th collective call, of any form:  calls = n (relaxed: nothing is published by it)
//   others    whose call n has waited too long:              members whose calls < n have not come
#pragma once
#include <cstdint>
#include <vector>

#include "engine/team/team.hpp"

namespace nearfield::api {

struct ArrivalControlBlock {
  alignas(team::line) Atomic<std::uint64_t> calls;  // its owner
};

class Arrivals {
 public:
  // `offsets`: of each member's control block in its segment.
  Arrivals(const team::Team& team, const std::vector<std::uint64_t>& offsets);
  // Local: we begin the next call; its number.
  std::uint64_t begin() {
    words_[std::size_t(me_)]->calls.store(++begun_, std::memory_order_relaxed);
    return begun_;
  }
  // Ranks that have not come to that call, in order.
  std::vector<int> missing(std::uint64_t call) const;

 private:
  const int me_;
  std::uint64_t begun_ = 0;
  std::vector<ArrivalControlBlock*> words_;
};

}  // namespace nearfield::api
