#include "engine/collectives/block_costs.hpp"
#include "engine/collectives/pieces/chunks.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(CollectiveContext& context, const Call& call) {
  rooted_by_ring<Ring>(context, {context, call}, [&](Ring& ring, std::uint64_t seq, Lengths& lengths) {
    if (context.rank() != call.root) return ring.publish(seq, call.send, call.bytes);
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + call.root * call.bytes, call.send, call.bytes);
    for (int i = 1; i < context.size(); ++i) {
      const int r = (call.root + i) % context.size();
      const std::byte* const from = ring.wait(r, seq);
      const std::size_t bytes = ring.bytes(r, seq);
      lengths.look(bytes);
      put(out + r * call.bytes, from, std::min(bytes, call.bytes));
    }
  });
}

void tree(CollectiveContext& context, const Call& call) {
  const std::size_t longest = branch_bytes(context.shape(), call.bytes);
  rooted_by_tree(context, call, longest, [&](auto& ring, std::uint64_t seq, Lengths& lengths) {
    gather_up(context, ring, seq, call.root, call.send, call.bytes, context.inputs(), lengths);
    if (context.rank() != call.root) return;
    for (int r = 0; r < context.size(); ++r)
      put(static_cast<std::byte*>(call.recv) + r * call.bytes, context.inputs()[r], call.bytes);
  });
}

void pipeline(CollectiveContext& context, const Call& call) {
  const int p = context.size();
  const auto stores = stores_for(context.shape(), 2 * double(call.bytes) * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const auto most = [&](std::size_t length) { return chunk_bytes(context, length); };
  rooted_by_chunks(
      context, call, most,
      [&](const Chunk& c) {
        stage_in(context, context.rounds.my_buffer(c.tick, c.bytes, BufferUse::copied, call.root), in + c.at, c.bytes);
      },
      [&](const Chunk& c) { put(out + call.root * call.bytes + c.at, in + c.at, c.bytes, stores); },
      [&](const Chunk& c) {
        std::uint64_t took = 0;
        for (int i = 1; i < p; ++i) {
          const int r = (call.root + i) % p;
          took += read_chunk(context, r, c, [&](const std::byte* from) {
            const Chunk theirs = of_sender(context, call, r, c, most);
            put_from(context, r, c.tick, out + r * call.bytes + theirs.at, from, theirs.bytes, stores);
          });
        }
        return took;
      });
}

// Root and senders share the work: the root copies a part of each block if it works in place, since it has no block of
// its own to copy then.
void direct(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  const auto store = store_for(context, 2 * call.bytes * std::size_t(p));
  if (me == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + me * call.bytes, call.send, call.bytes, store);
    for (int i = 1; i < p; ++i) {
      const int r = (me + i) % p;
      const auto part = root_share(context, call, r);
      put(out + r * call.bytes + part.first, context.exchange.send_of(r) + part.first, part.rest, store);
    }
  } else {
    put(context.exchange.recv_of(call.root) + me * exchanged_length(context, call.root), call.send,
        root_share(context, call, me).first, store);
  }
  finish_direct(context, call.root);
}

void shares(CollectiveContext& context, const Call& call, int first, int last) {
  const auto store = store_for(context, 2 * call.bytes * std::size_t(context.size()));
  for (int r = first; r < last; ++r)
    put(context.exchange.recv_of(call.root) + r * exchanged_length(context, call.root), context.exchange.send_of(r),
        exchanged_block(context, call.root, r), store);
}

double up_cost(const Shape& s, const Call& call) { return tree_cost(s, 2 * in_bytes(call) * s.size, -1); }

constexpr Algorithm rows[] = {
    {"line", Collective::gather, fits_line, blocks::line, RowBody(small<Lines>, ready<Lines>),
     "every sender puts its block into its ring of short records, up to 120 bytes"},
    {"slots", Collective::gather, fits_slot, blocks::slots, RowBody(small<Slots>, ready<Slots>),
     "every sender puts its block into its slot, up to 4 KiB"},
    {"tree", Collective::gather, up_fits, up_cost, RowBody(tree, rings_ready),
     "vectors climb the team's tree; up to 4 KiB below a leader", staged, nullptr, worth_climbing},
    {"pipeline", Collective::gather, always, blocks::pipeline, RowBody(pipeline, chunks_ready),
     "every sender passes its block on in chunks, through its copy buffers"},
    {"direct", Collective::gather, always, blocks::direct, direct,
     "between user buffers: root and senders share the copies", all_buffers, nullptr, nullptr, 0.3},
    {"together", Collective::gather, always, together, nullptr,
     "between user buffers: the ranks that have a CPU make the copies of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> gather_rows() { return rows; }

}  // namespace nearfield::collectives
