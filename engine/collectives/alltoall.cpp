// Alltoall.
#include "engine/collectives/direct.hpp"

namespace nearfield::collectives {
namespace {

void slots(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_slot();
  const int p = team.size(), me = team.rank();
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  put(team.reserve_slot(seq), in, call.bytes * p);
  team.publish_slot(seq, call.bytes * p);
  put(out + me * call.bytes, in + me * call.bytes, call.bytes);
  team.meet_slots(seq);
  for (int r = 0; r < p; ++r)
    if (r != me) put(out + r * call.bytes, team.slot(r, seq) + me * call.bytes, call.bytes);
}

// Every round carries a piece of each block; the piece for rank d lies at place d of the buffer. In place works
// because a round's pieces have all been staged, by everybody, before any of them is overwritten.
void rounds(Team& team, const Call& call) {
  const int p = team.size(), me = team.rank();
  const std::size_t place = team.buffer_bytes() / p / 64 * 64;
  const std::size_t piece = std::min(place, chunk_bytes(team, call.bytes));
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const auto store = store_for(team, 2 * call.bytes * p * p);
  auto length = [&](std::size_t k) { return std::min(piece, call.bytes - k * piece); };
  exchange_rounds(
      team, divide_up(call.bytes, piece),
      [&](std::size_t k, std::byte* buffer) {
        for (int i = 1; i < p; ++i) {
          const int to = (me + i) % p;
          put(buffer + to * place, in + to * call.bytes + k * piece, length(k));
        }
      },
      [&](std::size_t k, std::uint64_t tick) {
        put(out + me * call.bytes + k * piece, in + me * call.bytes + k * piece, length(k), store);
        for (int i = 1; i < p; ++i) {
          const int from = (me + p - i) % p;
          put(out + from * call.bytes + k * piece, team.buffer(from, tick) + me * place, length(k), store);
        }
      });
}

// Two members exchange `bytes` bytes at a and b, by way of a block that stays in the first-level cache.
void swap(std::byte* a, std::byte* b, std::size_t bytes) {
  alignas(64) std::byte block[4096];
  for (std::size_t at = 0; at < bytes; at += sizeof block) {
    const std::size_t n = std::min(sizeof block, bytes - at);
    put(block, a + at, n);
    put(a + at, b + at, n);
    put(b + at, block, n);
  }
}

// Every rank fetches its blocks, rotated. In place, the two ranks of each pair exchange half of their blocks each.
void shares(Team& team, const Call& call, int first, int last) {
  const int p = team.size();
  const std::size_t n = call.bytes;
  const bool in_place = call.send == call.recv;  // on all ranks alike, as MPI asks
  const auto store = store_for(team, 2 * n * std::size_t(p) * std::size_t(p));
  for (int to = first; to < last; ++to) {
    for (int i = 0; i < p; ++i) {
      const int from = (to + p - i) % p;
      if (!in_place) {
        put(team.recv_of(to) + from * n, team.send_of(from) + to * n, n, store);
      } else if (to != from) {
        const auto half = divide(n, 2);
        const std::size_t at = to < from ? 0 : half.first;
        swap(team.recv_of(to) + from * n + at, team.recv_of(from) + to * n + at, to < from ? half.first : half.rest);
      }
    }
  }
}

void direct(Team& team, const Call& call) {
  shares(team, call, team.rank(), team.rank() + 1);
  finish_direct(team);
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) { return meeting(s) + copying(s, 2 * in_bytes(call) * s.size, 0); }
double rounds_cost(const Shape& s, const Call& call) {
  return rounds_of(s, in_bytes(call) * s.size) +
         copying(s, 2 * in_bytes(call) * s.size, 2 * in_bytes(call) * s.size * s.size);
}
double direct_cost(const Shape& s, const Call& call) {
  return 2 * meeting(s) + copying(s, in_bytes(call) * s.size, 2 * in_bytes(call) * s.size * s.size);
}
double together_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call) * s.size * s.size;
  return together(s, n, alone(s) * copying(s, n, 2 * n));
}

constexpr Algorithm rows[] = {
    {"slots", Collective::alltoall, all_fit_slot, slots_cost, slots,
     "all blocks in every rank's slot, up to 4 KiB a rank"},
    {"rounds", Collective::alltoall, buffer_has_places, rounds_cost, rounds,
     "pieces of every block through copy buffers, rotated"},
    {"direct", Collective::alltoall, always, direct_cost, direct,
     "between user buffers: every rank fetches, rotated; in place pairs swap", all_buffers},
    {"together", Collective::alltoall, always, together_cost, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> alltoall_rows() { return rows; }

}  // namespace nearfield::collectives
