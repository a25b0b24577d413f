// Reduction by shares, the common loop of reduce and allreduce for long vectors (DPML, SC'17; YHCCL, SC'23).
//
// The vector passes in rounds of one buffer. In every round each member stages the round's input except its own
// share, reduces its own share out of all members' inputs in rank order, stores it to the result and into its second
// buffer, and members that need the result copy the other shares.
//
//   tick A   stage, post A | meet A, reduce own share, post B | stage the next round, post A' | meet B, copy shares
//
// A round takes two ticks. Staging the next round before copying this one keeps both halves overlapped; buffers are
// free by then, since a member that has posted B has read all of A, and one that has posted A' has copied the round
// before.
#pragma once
#include "engine/collectives/pieces/folding.hpp"

namespace nearfield::collectives {

// An estimate (costs.hpp); `vectors`: number of vectors that all members touch.
inline double by_shares(const Shape& s, double bytes, double vectors) {
  const double all = bytes * vectors, share = bytes / s.size, others = bytes - share;
  if (s.oversubscribed()) return 2 * rounds_of(s, bytes) + copying(s, 2 * bytes, all) + folding(s, bytes, all);
  // The loop below makes two at least.
  const double rounds = std::max(2.0, std::ceil(bytes / double(s.buffer_bytes)));
  // The first line of each member's part of a share is awaited, and its number before it.
  const double awaited = constants::share_lines * line_within(s, s.size) * std::min(share / rounds / 64, 1.0);
  return rounds * (2 * meeting_to_look(s) + (s.size - 1) * awaited) + filling(s, bytes, all) +
         combining(s, others, share, all) + emptying(s, others, all);
}

// `wants_result`: this member stores the whole result to call.recv.
inline void reduce_by_shares(CollectiveContext& context, const Call& call, bool wants_result) {
  const int p = context.size(), me = context.rank();
  const std::size_t element = call.bytes / call.count;
  const std::size_t wanted = divide_up(divide_up(call.bytes, 2), 4096) * 4096;
  const std::size_t round_count =
      std::min(std::max<std::size_t>(wanted, 16 << 10), context.shape().buffer_bytes) / element;
  const std::size_t rounds = divide_up(call.count, round_count);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto elements = [&](std::size_t k) { return std::min(round_count, call.count - k * round_count); };
  auto stage_round = [&](std::size_t k, std::uint64_t tick) {
    const Slice own = share(elements(k), p, me);
    const std::byte* from = in + k * round_count * element;
    std::byte* to = context.rounds.my_buffer(tick, (elements(k) - own.size()) * element, BufferUse::folded_by_readers);
    stage_in(context, to, from, own.begin * element);
    stage_in(context, to + own.begin * element, from + own.end * element, (elements(k) - own.end) * element);
    context.rounds.post(tick);
  };
  context.rounds.begin(call.bytes);
  const std::uint64_t first = context.ticks.now() + 1;
  const bool rooted = operation(call.collective).rooted(), alone = rooted && wants_result;
  stage_round(0, first);
  for (std::size_t k = 0; k < rounds; ++k) {
    const std::uint64_t a = first + 2 * k, b = a + 1;
    const std::size_t at = k * round_count * element;
    const Slice own = share(elements(k), p, me);
    context.ticks.meet(a);
    if (k == 0) compare_in_rounds(context, a, call.bytes);
    if (own.size()) {
      // The buffer of a member lacks that member's own share.
      const auto inputs = operands(context, in + at + own.begin * element, [&](int r) {
        return context.rounds.buffer(r, a) + (own.begin - (r < me ? share(elements(k), p, r).size() : 0)) * element;
      });
      const std::uint64_t took = context.rounds.timed(a, -1, [&] {
        void* for_others[1];
        if (!alone)
          for_others[0] =
              context.rounds.my_buffer(b, own.size() * element, BufferUse::folded_by_writer, rooted ? call.root : -1);
        fold_for_others(call, wants_result ? out + at + own.begin * element : nullptr,
                        std::span<void* const>(for_others, alone ? 0 : 1), inputs, own.size(),
                        [&](void* to, const void* from, std::size_t bytes) { stage_in(context, to, from, bytes); });
      });
      context.rounds.report_reading(a, took);
    }
    context.rounds.post(b);
    if (k + 1 < rounds) stage_round(k + 1, a + 2);
    if (wants_result) {
      for (int i = 1; i < p; ++i) {
        const int r = (me + i) % p;
        context.ticks.wait(r, b);
        const Slice theirs = share(elements(k), p, r);
        const std::uint64_t took = context.rounds.timed(b, r, [&] {
          put(out + at + theirs.begin * element, context.rounds.buffer(r, b), theirs.size() * element,
              context.rounds.emptying(r, b));
        });
        context.rounds.report_reading(b, took);
      }
    }
  }
  context.ticks.advance(2 * rounds);
  context.ticks.consume(context.ticks.now());
}

}  // namespace nearfield::collectives
