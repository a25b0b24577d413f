// Barrier: every member publishes an empty slot and waits for all others'.
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {
namespace {

void slots(CollectiveContext& context, const Call&) { context.slots.allgather(nullptr, 0); }

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call&) { return meeting(s); }

constexpr Algorithm rows[] = {
    {"slots", Collective::barrier, always, slots_cost, slots,
     "one flag per rank, or along the team's tree; with more ranks than CPUs, one counter of the first rank"},
};

}  // namespace

std::span<const Algorithm> barrier_rows() { return rows; }

}  // namespace nearfield::collectives
