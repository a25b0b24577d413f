// Reduce. Operands are combined from left to right in rank order by every algorithm.
#include "engine/collectives/pieces/chunks.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/partitioned.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(CollectiveContext& context, const Call& call) {
  rooted_by_ring<Ring>(context, {context, call}, [&](Ring& ring, std::uint64_t seq, Lengths& lengths) {
    if (context.rank() != call.root) return ring.publish(seq, call.send, call.bytes);
    const auto inputs = operands(context, call.send, [&](int r) {
      const std::byte* const theirs = ring.wait(r, seq);
      lengths.look(ring.bytes(r, seq));
      return theirs;
    });
    combine(call, call.recv, inputs, call.count);
  });
}

void tree(CollectiveContext& context, const Call& call) {
  const std::size_t longest = reducing::associative(call.type) ? call.bytes : branch_bytes(context.shape(), call.bytes);
  rooted_by_tree(context, call, longest, [&](auto& ring, std::uint64_t seq, Lengths& lengths) {
    reduce_up(context, ring, seq, call.root, call, call.count, call.recv, lengths);
  });
}

void pipeline(CollectiveContext& context, const Call& call) {
  const std::size_t element = call.bytes / call.count;
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  rooted_by_chunks(
      context, call, [&](std::size_t length) { return chunk_bytes(context, length); },
      [&](const Chunk& c) {
        std::byte* const buffer = context.rounds.my_buffer(c.tick, c.bytes, BufferUse::folded_by_readers, call.root);
        stage_in(context, buffer, in + c.at, c.bytes);
      },
      [](const Chunk&) {},
      [&](const Chunk& c) {
        const auto inputs = operands(context, in + c.at, [&](int r) {
          context.ticks.wait(r, c.tick);
          return context.rounds.buffer(r, c.tick);
        });
        return context.rounds.timed(c.tick, -1, [&] { combine(call, out + c.at, inputs, c.bytes / element); });
      });
}

void partitioned(CollectiveContext& context, const Call& call) {
  reduce_by_shares(context, call, context.rank() == call.root);
}

// Every rank reduces its share out of all send buffers and stores it to the root.
void shares(CollectiveContext& context, const Call& call, int first, int last) {
  reduce_direct(context, call, first, last, {std::size_t(call.root), std::size_t(call.root) + 1});
}

void direct(CollectiveContext& context, const Call& call) {
  shares(context, call, context.rank(), context.rank() + 1);
  // All members read the others' send buffers, so all wait for all.
  finish_direct(context);
}

void direct_blocks(CollectiveContext& context, const Call& call) {
  const auto root = std::size_t(call.root);
  reduce_direct<Outputs::pieces>(context, call, context.rank(), context.rank() + 1, {root, root + 1});
  finish_direct(context);
}

// ---- estimates (costs.hpp)
double line_cost(const Shape& s, const Call& call) {
  return collecting(s, lines_ahead) + folding(s, in_bytes(call) * s.size, 0);
}
double slots_cost(const Shape& s, const Call& call) {
  return collecting(s, slots_ahead) + constants::line_overlapped * line_within(s, s.size) +
         keeping(s, in_bytes(call), 0) + folding(s, in_bytes(call) * s.size, 0);
}
double up_cost(const Shape& s, const Call& call) {
  return tree_cost(s, in_bytes(call) * s.size, -1) + folding(s, in_bytes(call) * s.size, 0);
}
double pipeline_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * (s.size + 1);
  if (!s.oversubscribed()) return pipelined(s, n, filling(s, n, all), combining(s, n * (s.size - 1), n, all));
  return rounds_of(s, n, buffers_ahead) + constants::oversubscribed_copies * copying(s, n, n * s.size) +
         folding(s, n * s.size, all) * alone(s);
}
double partitioned_cost(const Shape& s, const Call& call) { return by_shares(s, in_bytes(call), s.size); }
double direct_cost(const Shape& s, const Call& call) {
  return buffer_exchange(s) + folding(s, in_bytes(call), in_bytes(call) * (s.size + 1)) +
         copying(s, in_bytes(call) / s.size, 0);
}

constexpr Algorithm rows[] = {
    {"line", Collective::reduce, fits_line, line_cost, RowBody(small<Lines>, ready<Lines>),
     "every rank puts its vector into its ring of short records, and the root reduces; up to 120 bytes"},
    {"slots", Collective::reduce, fits_slot, slots_cost, RowBody(small<Slots>, ready<Slots>),
     "every rank puts its vector into its slot, and the root reduces; up to 4 KiB"},
    {"tree", Collective::reduce, up_fits, up_cost, RowBody(tree, rings_ready),
     "vectors climb the team's tree; up to 4 KiB below a leader", staged, nullptr, worth_climbing},
    {"pipeline", Collective::reduce, always, pipeline_cost, RowBody(pipeline, chunks_ready),
     "every rank passes its vector on in chunks, through its copy buffers, and the root reduces"},
    {"partitioned", Collective::reduce, always, partitioned_cost, partitioned,
     "the vectors pass through copy buffers in rounds; every rank reduces its share of each"},
    {"direct", Collective::reduce, always, direct_cost, direct,
     "between user buffers: every rank reduces its share and stores it to the root", all_buffers, nullptr, nullptr, 2},
    {"direct-blocks", Collective::reduce, always, direct_cost, direct_blocks,
     "as direct, but in blocks, by stores that do not fetch the root's cache lines first", all_buffers},
    {"together", Collective::reduce, always, together, nullptr,
     "between user buffers: the ranks that have a CPU reduce the shares of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> reduce_rows() { return rows; }

}  // namespace nearfield::collectives
