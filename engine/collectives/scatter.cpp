#include "engine/collectives/block_costs.hpp"
#include "engine/collectives/pieces/chunks.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(CollectiveContext& context, const Call& call) {
  rooted_by_ring<Ring>(context, {context, call}, [&](Ring& ring, std::uint64_t seq, Lengths& lengths) {
    if (context.rank() == call.root) {
      const auto* in = static_cast<const std::byte*>(call.send);
      ring.publish(seq, in, call.bytes * context.size());
      put(call.recv, in + call.root * call.bytes, call.bytes);
    } else {
      const std::byte* const from = ring.wait(call.root, seq);
      const std::size_t bytes = ring.bytes(call.root, seq) / std::size_t(context.size());
      lengths.look(bytes);
      put(call.recv, from + context.rank() * bytes, std::min(bytes, call.bytes));
    }
  });
}

void tree(CollectiveContext& context, const Call& call) {
  rooted_by_tree(context, call, call.bytes * std::size_t(context.size()),
                 [&](auto& ring, std::uint64_t seq, Lengths& lengths) {
                   scatter_down(context, ring, seq, call.root, call.send, call.recv, call.bytes, lengths);
                 });
}

std::size_t length_of_pieces(const CollectiveContext& context, std::size_t bytes) {
  return std::min(round_bytes(context, bytes, context.size() - 1), chunk_bytes(context, bytes));
}
bool pieces_ready(CollectiveContext& context, const Call& call) {
  return context.rounds.ready(divide_up(call.bytes, length_of_pieces(context, call.bytes)));
}

void pipeline(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  std::size_t place = 0;
  const auto most = [&](std::size_t length) {
    const std::size_t piece = length_of_pieces(context, length);
    place = place_bytes(context, piece, p - 1);
    return piece;
  };
  const auto stores = stores_for(context.shape(), 2 * double(call.bytes) * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  rooted_by_chunks(
      context, call, most,
      [&](const Chunk& c) {
        std::byte* const buffer = context.rounds.my_buffer(c.tick, (p - 1) * place, BufferUse::copied);
        for (int i = 1; i < p; ++i)
          stage_in(context, buffer + (i - 1) * place, in + (me + i) % p * call.bytes + c.at, c.bytes);
      },
      [&](const Chunk& c) { put(out + c.at, in + me * call.bytes + c.at, c.bytes, stores); },
      [&](const Chunk& c) {
        return read_chunk(context, call.root, c, ((me + p - call.root) % p - 1) * place, out + c.at, stores);
      });
}

// Root and receivers share the work: the root copies a part of each block if it works in place, since it has no block
// of its own to copy then.
void direct(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  const auto store = store_for(context, 2 * call.bytes * std::size_t(p));
  if (me == call.root) {
    const auto* in = static_cast<const std::byte*>(call.send);
    for (int i = 1; i < p; ++i) {
      const int r = (me + i) % p;
      const auto part = root_share(context, call, r);
      put(context.exchange.recv_of(r) + part.first, in + r * call.bytes + part.first, part.rest, store);
    }
    put(call.recv, in + me * call.bytes, call.bytes, store);
  } else {
    put(call.recv, context.exchange.send_of(call.root) + me * exchanged_length(context, call.root),
        root_share(context, call, me).first, store);
  }
  finish_direct(context, call.root);
}

void shares(CollectiveContext& context, const Call& call, int first, int last) {
  const auto store = store_for(context, 2 * call.bytes * std::size_t(context.size()));
  for (int r = first; r < last; ++r)
    put(context.exchange.recv_of(r), context.exchange.send_of(call.root) + r * exchanged_length(context, call.root),
        exchanged_block(context, call.root, r), store);
}

double down_cost(const Shape& s, const Call& call) { return tree_cost(s, -1, in_bytes(call) * s.size); }

constexpr Algorithm rows[] = {
    {"line", Collective::scatter, all_fit_line, blocks::line, RowBody(small<Lines>, ready<Lines>),
     "the root puts all blocks into its ring of short records, up to 120 bytes together"},
    {"slots", Collective::scatter, all_fit_slot, blocks::slots, RowBody(small<Slots>, ready<Slots>),
     "the root puts all blocks into its slot, up to 4 KiB together"},
    {"tree", Collective::scatter, all_down_fit, down_cost, RowBody(tree, rings_ready),
     "all blocks go down the team's tree, up to 4 KiB together", staged, nullptr, worth_climbing},
    {"pipeline", Collective::scatter, buffer_has_places, blocks::pipeline, RowBody(pipeline, pieces_ready),
     "the root passes the blocks on in pieces, through its copy buffers"},
    {"direct", Collective::scatter, always, blocks::direct, direct,
     "between user buffers: root and receivers share the copies", all_buffers},
    {"together", Collective::scatter, always, together, nullptr,
     "between user buffers: the ranks that have a CPU make the copies of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> scatter_rows() { return rows; }

}  // namespace nearfield::collectives
