// Allreduce. Operands are combined from left to right in rank order by every algorithm, so that the same input gives
// the same bits whatever the path.
#include "engine/collectives/partitioned.hpp"

namespace nearfield::collectives {
namespace {

void slots(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_slot();
  std::byte* mine = team.reserve_slot(seq);
  put(mine, call.send, call.bytes);
  team.publish_slot(seq, call.bytes);
  auto inputs = team.inputs();
  for (int r = 0; r < team.size(); ++r) inputs[r] = team.slot(r, seq);
  inputs[team.rank()] = call.send;
  team.meet_slots(seq);
  void* out = call.recv;
  call.fold(&out, 1, inputs.data(), inputs.size(), call.count);
}

// Everybody stages everything and reduces everything: one meeting, p times the arithmetic.
void oneshot(Team& team, const Call& call) {
  exchange_rounds(
      team, 1, [&](std::size_t, std::byte* buffer) { put(buffer, call.send, call.bytes); },
      [&](std::size_t, std::uint64_t tick) {
        auto inputs = team.inputs();
        for (int r = 0; r < team.size(); ++r) inputs[r] = team.buffer(r, tick);
        inputs[team.rank()] = call.send;
        void* out = call.recv;
        call.fold(&out, 1, inputs.data(), inputs.size(), call.count);
      });
}

void partitioned(Team& team, const Call& call) { reduce_by_shares(team, call, true); }

bool fits_buffer(const Team& team, const Call& call) { return call.bytes <= team.buffer_bytes(); }

double slots_cost(const Team& team, const Call& call) {
  return wait_cost(team) + copy_per_byte * double(call.bytes) * (team.size() + 1);
}
double oneshot_cost(const Team& team, const Call& call) {
  return wait_cost(team) + round_overhead + copy_per_byte * double(call.bytes) * (team.size() + 1);
}
double partitioned_cost(const Team& team, const Call& call) {
  const double per_byte = team.crowded() ? 5.0 * team.size() / 2 : 4;
  const double rounds = double(divide_up(call.bytes, team.buffer_bytes()));
  return rounds * 2 * (wait_cost(team) + round_overhead) + copy_per_byte * double(call.bytes) * per_byte;
}

constexpr Algorithm rows[] = {
    {"slots", Collective::allreduce, block_fits_slot, slots_cost, slots,
     "payload in slots, everybody reduces everything; up to 4 KiB"},
    {"oneshot", Collective::allreduce, fits_buffer, oneshot_cost, oneshot,
     "one round of copy buffers, everybody reduces everything"},
    {"partitioned", Collective::allreduce, always, partitioned_cost, partitioned,
     "rounds of copy buffers, every rank reduces its share"},
};

}  // namespace

std::span<const Algorithm> allreduce_rows() { return rows; }

}  // namespace nearfield::collectives
