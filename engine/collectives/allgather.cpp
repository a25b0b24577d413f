// Allgather.
#include "engine/collectives/direct.hpp"

namespace nearfield::collectives {
namespace {

void slots(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_slot();
  auto* out = static_cast<std::byte*>(call.recv);
  put(team.reserve_slot(seq), call.send, call.bytes);
  team.publish_slot(seq, call.bytes);
  put(out + team.rank() * call.bytes, call.send, call.bytes);
  team.meet_slots(seq);
  for (int r = 0; r < team.size(); ++r)
    if (r != team.rank()) put(out + r * call.bytes, team.slot(r, seq), call.bytes);
}

void rounds(Team& team, const Call& call) {
  const std::size_t chunk = chunk_bytes(team, call.bytes);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const int p = team.size(), me = team.rank();
  const auto store = store_for(team, call.bytes * p * (p + 1));
  auto length = [&](std::size_t k) { return std::min(chunk, call.bytes - k * chunk); };
  exchange_rounds(
      team, divide_up(call.bytes, chunk),
      [&](std::size_t k, std::byte* buffer) { put(buffer, in + k * chunk, length(k)); },
      [&](std::size_t k, std::uint64_t tick) {
        put(out + me * call.bytes + k * chunk, in + k * chunk, length(k), store);
        for (int i = 1; i < p; ++i) {
          const int r = (me + i) % p;
          put(out + r * call.bytes + k * chunk, team.buffer(r, tick), length(k), store);
        }
      });
}

// Every rank copies out of all send buffers; receive buffers may be anywhere.
void shares(Team& team, const Call& call, int first, int last) {
  const int p = team.size();
  const auto store = store_for(team, call.bytes * std::size_t(p) * std::size_t(p + 1));
  for (int to = first; to < last; ++to) {
    for (int i = 1; i <= p; ++i) {
      const int r = (to + i) % p;
      put(team.recv_of(to) + r * call.bytes, team.send_of(r), call.bytes, store);
    }
  }
}

void direct(Team& team, const Call& call) {
  shares(team, call, team.rank(), team.rank() + 1);
  finish_direct(team);
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) {
  return meeting(s) + copying(s, in_bytes(call) * (s.size + 1), 0);
}
double rounds_cost(const Shape& s, const Call& call) {
  return rounds_of(s, in_bytes(call)) +
         copying(s, in_bytes(call) * (s.size + 1) * (s.crowded() ? 2 : 1), in_bytes(call) * s.size * (s.size + 1));
}
double direct_cost(const Shape& s, const Call& call) {
  return 2 * meeting(s) + copying(s, in_bytes(call) * s.size, in_bytes(call) * s.size * (s.size + 1));
}
double together_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call) * s.size * s.size;
  return together(s, n, alone(s) * copying(s, n, n));
}

constexpr Algorithm rows[] = {
    {"slots", Collective::allgather, fits_slot, slots_cost, slots, "payload in every rank's slot, up to 4 KiB"},
    {"rounds", Collective::allgather, always, rounds_cost, rounds, "chunks through everybody's copy buffers"},
    {"direct", Collective::allgather, always, direct_cost, direct, "between user buffers: every rank fetches, rotated",
     send_buffers},
    {"together", Collective::allgather, always, together_cost, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> allgather_rows() { return rows; }

}  // namespace nearfield::collectives
