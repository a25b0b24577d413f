// Scan and Exscan: the operands of all members up to us, or before us, combined from left to right in rank order.
//
// Operands that fit a slot are published, and every member combines those it needs when the members below have
// published theirs, so that lower members run ahead. Longer ones go through rounds of copy buffers, or, of Scan, along
// a chain of results that peers can reach: 1/p of the arithmetic, but p steps one after another.
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {
namespace {

// Combines the operands that our result needs, given those of all members.
void combine_own(const CollectiveContext& context, const Call& call, void* out, std::span<const void*> all,
                 std::size_t count) {
  const bool includes_own = operation(call.collective).combines == Combines::up_to_own;
  const auto ours = all.first(std::size_t(context.rank()) + includes_own);
  if (ours.size() == 1) put(out, ours[0], count * (call.bytes / call.count));
  else if (ours.size() > 1) combine(call, out, ours, count);
}

// Members do not wait for those above them.
template <class Ring>
void from_below(CollectiveContext& context, const Call& call) {
  rooted_by_ring<Ring>(context, {context, call}, [&](Ring& ring, std::uint64_t seq, Lengths& lengths) {
    ring.publish(seq, call.send, call.bytes);
    const auto inputs = context.inputs();
    for (int r = 0; r < context.rank(); ++r) {
      inputs[r] = ring.wait(r, seq);
      lengths.look(ring.bytes(r, seq));
    }
    inputs[context.rank()] = call.send;
    combine_own(context, call, call.recv, inputs, call.count);
  });
}

void rounds(CollectiveContext& context, const Call& call) {
  const std::size_t element = call.bytes / call.count;
  const std::size_t most = round_bytes(context, call.bytes, 1) / element * element;
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto length = [&](std::size_t k) { return std::min(most, call.bytes - k * most); };
  all_by_rounds(
      context, call.bytes, divide_up(call.bytes, most), BufferUse::folded_by_readers, length,
      [&](std::size_t k, std::byte* buffer) { stage_in(context, buffer, in + k * most, length(k)); },
      [](std::size_t) {},
      [&](std::size_t k, std::uint64_t tick) {
        const auto inputs = operands(context, in + k * most, [&](int r) { return context.rounds.buffer(r, tick); });
        combine_own(context, call, out + k * most, inputs, length(k) / element);
      });
}

// Returns the bytes of a piece: several pieces, so that members work at the same time, but none so short that
// publishing it costs more than combining.
std::size_t chain_piece(const Call& call) {
  constexpr std::size_t pieces = 8, least = 32 << 10;
  return std::max(divide_up(call.bytes, pieces), least);
}

// Each member combines the result of the one below with its own operand, piece by piece.
//
//   member r   wait for piece k of r - 1   combine   post k   ...   meet
void chain(CollectiveContext& context, const Call& call) {
  const std::size_t element = call.bytes / call.count, piece = chain_piece(call) / element;
  const auto* own = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const int below = context.rank() - 1;
  for (std::size_t at = 0; at < call.count; at += piece) {
    const std::size_t count = std::min(piece, call.count - at), offset = at * element;
    if (below < 0) {
      put(out + offset, own + offset, count * element);
    } else {
      context.ticks.wait(below, context.ticks.now() + 1);
      const void* const operands[] = {context.exchange.recv_of(below) + offset, own + offset};
      combine(call, out + offset, operands, count);
    }
    context.ticks.post_empty();
  }
  finish_direct(context);
}

// ---- estimates (costs.hpp), of the last member
double from_below_cost(const Shape& s, const Call& call, double ahead) {
  return collecting(s, ahead) + copying(s, in_bytes(call), 0) + folding(s, in_bytes(call) * s.size, 0);
}
double line_cost(const Shape& s, const Call& call) { return from_below_cost(s, call, lines_ahead); }
double below_cost(const Shape& s, const Call& call) { return from_below_cost(s, call, slots_ahead); }
double rounds_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * (s.size + 2);
  if (!s.oversubscribed()) return rounds_of(s, n) + filling(s, n, all) + combining(s, n * (s.size - 1), n, all);
  return rounds_of(s, n) + copying(s, n, all) + folding(s, n * s.size, all);
}

double chain_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), one = folding(s, 2 * n, 2 * n * s.size);
  if (s.oversubscribed()) return buffer_exchange(s) + one + around(s);
  const double pieces = std::max(1.0, double(divide_up(call.bytes, chain_piece(call))));
  return buffer_exchange(s) + (one / pieces + line_within(s, s.size)) * (pieces + s.size - 1);
}

// Scan's; the last one is not Exscan's.
template <Collective collective>
constexpr Algorithm rows[] = {
    {"line", collective, fits_line, line_cost, from_below<Lines>,
     "each rank combines the payloads of the ranks below, in rings of short records; up to 120 bytes"},
    {"below", collective, fits_slot, below_cost, from_below<Slots>,
     "each rank combines the payloads of the ranks below, in slots; up to 4 KiB"},
    {"rounds", collective, always, rounds_cost, rounds,
     "vectors pass through copy buffers in rounds; every rank combines those that it needs"},
    {"chain", collective, always, chain_cost, chain,
     "between user buffers: each rank combines the result of the rank below with its own operand", recv_buffers}};

}  // namespace

std::span<const Algorithm> scan_rows() { return rows<Collective::scan>; }
std::span<const Algorithm> exscan_rows() { return std::span(rows<Collective::exscan>).first(3); }

}  // namespace nearfield::collectives
