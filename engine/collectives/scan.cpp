// Scan and Exscan: what all members up to us, or before us, have given, combined from left to right in rank order.
//
// Lengths that fit a slot are published, and everybody combines what it needs; longer ones go through rounds of copy
// buffers in the same way. (A chain of partial results would do 1/p of the arithmetic, but p steps one after another.)
#include "engine/collectives/pieces/folding.hpp"
#include "engine/collectives/pieces/slots.hpp"

namespace nearfield::collectives {
namespace {

// Of the operands of all members those that are ours to combine.
void combine_own(const Track& track, const Call& call, void* out, std::span<const void*> all, std::size_t count) {
  const bool includes_own = operation(call.collective).combines == Combines::up_to_own;
  const auto ours = all.first(std::size_t(track.rank()) + includes_own);
  if (ours.size() == 1) put(out, ours[0], count * (call.bytes / call.count));
  else if (ours.size() > 1) combine(call, out, ours, count);
}

void slots(Track& track, const Call& call) {
  all_by_slots(
      track, call.send, call.bytes,
      [&](std::uint64_t seq) { operands(track, call.send, [&](int r) { return track.slot(r, seq); }); },
      [&](std::uint64_t) { combine_own(track, call, call.recv, track.inputs(), call.count); });
}

void rounds(Track& track, const Call& call) {
  const std::size_t element = call.bytes / call.count;
  const std::size_t most = round_bytes(track, call.bytes, 1) / element * element;
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto length = [&](std::size_t k) { return std::min(most, call.bytes - k * most); };
  all_by_rounds(
      track, divide_up(call.bytes, most), Track::Passing::folded_by_readers, length,
      [&](std::size_t k, std::byte* buffer) { stage_in(track, buffer, in + k * most, length(k)); }, [](std::size_t) {},
      [&](std::size_t k, std::uint64_t tick) {
        const auto inputs = operands(track, in + k * most, [&](int r) { return track.buffer(r, tick); });
        combine_own(track, call, out + k * most, inputs, length(k) / element);
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
