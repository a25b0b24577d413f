// Barrier: everybody publishes an empty slot and waits for everybody's.
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {
namespace {

void slots(Team& team, const Call&) {
  const std::uint64_t seq = team.next_slot();
  team.reserve_slot(seq);
  team.publish_slot(seq, 0);
  team.meet_slots(seq);
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call&) { return meeting(s); }

constexpr Algorithm rows[] = {
    {"slots", Collective::barrier, always, slots_cost, slots,
     "one flag per rank, or along the team's tree; crowded teams meet at the leader's gate"},
};

}  // namespace

std::span<const Algorithm> barrier_rows() { return rows; }

}  // namespace nearfield::collectives
