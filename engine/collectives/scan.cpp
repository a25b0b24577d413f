// Scan and Exscan: what all members up to us, or before us, have given, combined from left to right in rank order.
//
// Lengths that fit a slot are published, and everybody combines what it needs; longer ones go through rounds of copy
// buffers in the same way. (A chain of partial results would do 1/p of the arithmetic, but p steps one after another.)
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {
namespace {

// `inputs`: a vector of each member.
void combine(const Track& track, const Call& call, void* out, std::span<const void*> inputs, std::size_t count) {
  const bool includes_own = operation(call.collective).combines == Combines::up_to_own;
  const auto operands = std::size_t(track.rank()) + includes_own;
  if (operands == 1) put(out, inputs[0], count * (call.bytes / call.count));
  else if (operands > 1) call.fold(&out, 1, inputs.data(), operands, count);
}

void slots(Track& track, const Call& call) {
  const std::uint64_t seq = track.next_slot();
  stage(track.reserve_slot(seq), call.send, call.bytes);
  track.publish_slot(seq, call.bytes);
  auto inputs = track.inputs();
  for (int r = 0; r < track.size(); ++r) inputs[r] = track.slot(r, seq);
  inputs[track.rank()] = call.send;
  track.meet_slots(seq);
  Lengths lengths(track, call.bytes);
  lengths.look_at_slots(seq);
  combine(track, call, call.recv, inputs, call.count);
  lengths.report();
}

void rounds(Track& track, const Call& call) {
  const std::size_t element = call.bytes / call.count;
  const std::size_t most = round_bytes(track, call.bytes, 1) / element * element;
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto length = [&](std::size_t k) { return std::min(most, call.bytes - k * most); };
  exchange_rounds(
      track, divide_up(call.bytes, most), Track::Passing::folded_by_readers, length,
      [&](std::size_t k, std::byte* buffer) { stage_in(track, buffer, in + k * most, length(k)); }, [](std::size_t) {},
      [&](std::size_t k, std::uint64_t tick) {
        auto inputs = track.inputs();
        for (int r = 0; r < track.size(); ++r) inputs[r] = track.buffer(r, tick);
        inputs[track.rank()] = in + k * most;
        combine(track, call, out + k * most, inputs, length(k) / element);
      });
}

// ---- estimates (costs.hpp), of the last member
double slots_cost(const Shape& s, const Call& call) {
  return meeting_to_look(s) + copying(s, in_bytes(call), 0) + folding(s, in_bytes(call) * s.size, 0);
}
double rounds_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * (s.size + 2);
  if (!s.crowded()) return rounds_of(s, n) + filling(s, n, all) + combining(s, n * (s.size - 1), n, all);
  return rounds_of(s, n) + copying(s, n, all) + folding(s, n * s.size, all);
}

template <Collective collective>
constexpr Algorithm rows[] = {
    {"slots", collective, fits_slot, slots_cost, slots, "payload in slots, everybody combines its own; up to 4 KiB"},
    {"rounds", collective, always, rounds_cost, rounds, "rounds of copy buffers, everybody combines its own"},
};

}  // namespace

std::span<const Algorithm> scan_rows() { return rows<Collective::scan>; }
std::span<const Algorithm> exscan_rows() { return rows<Collective::exscan>; }

}  // namespace nearfield::collectives
