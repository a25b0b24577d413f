// Reduce_scatter_block. Operands are combined from left to right in rank order by every algorithm.
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/slots.hpp"
#include "engine/collectives/pieces/tree.hpp"
#include "engine/memory/temporaries.hpp"

namespace nearfield::collectives {
namespace {

void slots(Track& track, const Call& call) {
  const auto* in = static_cast<const std::byte*>(call.send);
  const std::size_t at = track.rank() * call.bytes;
  all_by_slots(
      track, in, call.bytes * track.size(),
      [&](std::uint64_t seq) { operands(track, in + at, [&](int r) { return track.slot(r, seq) + at; }); },
      [&](std::uint64_t) { combine(call, call.recv, track.inputs(), call.count); });
}

// The first member reduces all blocks into the slot from which they travel down again.
void tree(Track& track, const Call& call) {
  constexpr int root = 0;
  const std::uint64_t up = track.next_slot(), down = track.next_slot();
  const auto p = std::size_t(track.size());
  void* const all = track.rank() == root ? track.reserve_slot(down) : nullptr;
  reduce_up<Slots>(track, up, root, call, call.count * p, all);
  scatter_down<Slots>(track, down, root, all, call.recv, call.bytes);
  track.have_met_slots(up);
}

// Every round carries a piece of each block; the piece for the rank that follows us by i lies at place i - 1. In place,
// a rank's result overwrites the first block, whose piece of this round everybody has staged by then.
void rounds(Track& track, const Call& call) {
  const int p = track.size(), me = track.rank();
  const std::size_t element = call.bytes / call.count;
  const std::size_t piece = round_bytes(track, call.bytes, p - 1), place = place_bytes(track, piece, p - 1);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto length = [&](std::size_t k) { return std::min(piece, call.bytes - k * piece); };
  all_by_rounds(
      track, divide_up(call.bytes, piece), Track::Passing::folded_by_readers,
      [&](std::size_t) { return (p - 1) * place; },
      [&](std::size_t k, std::byte* buffer) {
        for (int i = 1; i < p; ++i) {
          const int to = (me + i) % p;
          stage_in(track, buffer + (i - 1) * place, in + to * call.bytes + k * piece, length(k));
        }
      },
      [](std::size_t) {},
      [&](std::size_t k, std::uint64_t tick) {
        const auto inputs = operands(track, in + me * call.bytes + k * piece,
                                     [&](int r) { return track.buffer(r, tick) + ((me + p - r) % p - 1) * place; });
        combine(call, out + k * piece, inputs, length(k) / element);
      });
}

// Every rank reduces its own block out of all send buffers. In place, its result belongs where rank 0 still reads, and
// waits in a temporary until all have read.
void direct(Track& track, const Call& call) {
  const int p = track.size(), me = track.rank();
  auto inputs = track.inputs();
  for (int r = 0; r < p; ++r) inputs[r] = track.send_of(r) + me * call.bytes;
  if (call.send != call.recv) {
    combine(call, call.recv, inputs, call.count);
    return finish_direct(track);
  }
  const memory::Temporary temporary(call.bytes);
  if (!temporary.data()) throw std::bad_alloc();
  combine(call, temporary.data(), inputs, call.count);
  finish_direct(track);
  put(call.recv, temporary.data(), call.bytes);
}

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) {
  return meeting_to_look(s) + copying(s, in_bytes(call) * s.size, 0) + folding(s, in_bytes(call) * s.size, 0);
}
double up_and_down_cost(const Shape& s, const Call& call) {
  const double all = in_bytes(call) * s.size;
  return tree_cost(s, all * s.size, all) + folding(s, all * s.size, 0);
}
double rounds_cost(const Shape& s, const Call& call) {
  const double all = in_bytes(call) * s.size;
  const double others = all - in_bytes(call), working_set = all * (s.size + 1);
  if (s.crowded()) return rounds_of(s, all) + copying(s, all, working_set) + folding(s, all, working_set);
  return rounds_of(s, others) + filling(s, others, working_set) + combining(s, others, in_bytes(call), working_set);
}
double direct_cost(const Shape& s, const Call& call) {
  const double all = in_bytes(call) * s.size;
  return exposing(s) + folding(s, all, all * s.size) + copying(s, in_bytes(call) / 2, 0);
}

constexpr Algorithm rows[] = {
    {"slots", Collective::reduce_scatter_block, all_fit_slot, slots_cost, slots,
     "all blocks in every rank's slot, up to 4 KiB a rank"},
    {"tree", Collective::reduce_scatter_block, all_up_fit, up_and_down_cost, tree,
     "all blocks along the team's tree, up to 4 KiB below a leader", staged, nullptr, worth_climbing},
    {"rounds", Collective::reduce_scatter_block, buffer_has_places, rounds_cost, rounds,
     "pieces of every block through copy buffers"},
    {"direct", Collective::reduce_scatter_block, always, direct_cost, direct,
     "between user buffers: every rank reduces its block", send_buffers},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_block_rows() { return rows; }

}  // namespace nearfield::collectives
