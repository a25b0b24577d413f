// Barrier: every member publishes an empty slot and waits for all others'.
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {
namespace {

void slots(CollectiveContext& context, const Call&) { context.slots.allgather(nullptr, 0); }

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call&) { return meeting(s); }

constexpr Algorithm rows[] = {
    {"slots", Collective::barrier, always, slots_cost, slots,
     "every rank looks at a flag of each other one, or along the team's tree; if ranks share CPUs, they add to one "
     "counter"},
};

}  // namespace

std::span<const Algorithm> barrier_rows() { return rows; }

}  // namespace nearfield::collectives
