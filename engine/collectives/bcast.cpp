#include "engine/collectives/pieces/chunks.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/gaps.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(CollectiveContext& context, const Call& call) {
  rooted_by_ring<Ring>(context, {context, call}, [&](Ring& ring, std::uint64_t seq, Lengths& lengths) {
    if (context.rank() == call.root) return ring.publish(seq, call.send, call.bytes);
    const std::byte* const from = ring.wait(call.root, seq);
    const std::size_t bytes = ring.bytes(call.root, seq);
    lengths.look(bytes);
    put(call.recv, from, std::min(bytes, call.bytes));
  });
}

void tree(CollectiveContext& context, const Call& call) {
  rooted_by_tree(context, call, call.bytes, [&](auto& ring, std::uint64_t seq, Lengths& lengths) {
    pass_down(context, ring, seq, call.root, call.send, call.recv, call.bytes, lengths);
  });
}

void pipeline(CollectiveContext& context, const Call& call) {
  const auto stores = stores_for(context.shape(), double(call.bytes) * (context.size() + 1));
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  rooted_by_chunks(
      context, call, [&](std::size_t length) { return chunk_bytes(context, length); },
      [&](const Chunk& c) {
        std::byte* const to = context.rounds.my_buffer(c.tick, c.bytes, BufferUse::copied);
        if (call.gaps) layout::gather(to, *call.gaps, c.at, c.bytes);
        else stage_in(context, to, in + c.at, c.bytes);
      },
      [](const Chunk&) {},
      [&](const Chunk& c) {
        if (!call.gaps) return read_chunk(context, call.root, c, 0, out + c.at, stores);
        return read_chunk(context, call.root, c, [&](const std::byte* from) {
          if (c.bytes) layout::scatter(*call.gaps, c.at, from, c.bytes);
        });
      });
}

// Root and receivers share the work: every receiver copies all but 1/p of the data, the root copies the rest to each.
void direct(CollectiveContext& context, const Call& call) {
  const int p = context.size();
  const auto part = divide(call.bytes, std::size_t(p));
  const auto store = store_for(context, call.bytes * std::size_t(p));
  if (context.rank() == call.root) {
    for (int i = 1; i < p; ++i) {
      const int r = (call.root + i) % p;
      put(context.exchange.recv_of(r) + part.first, static_cast<const std::byte*>(call.send) + part.first, part.rest,
          store);
    }
  } else {
    land(call, 0, context.exchange.send_of(call.root), part.first, store);
  }
  finish_direct(context, call.root);
  if (call.gaps && context.rank() != call.root)
    layout::scatter(*call.gaps, part.first, static_cast<std::byte*>(call.recv) + part.first, part.rest);
}

// Every receiver copies, so receive buffers may be out of peers' reach.
void direct_pull(CollectiveContext& context, const Call& call) {
  if (context.rank() != call.root)
    land(call, 0, context.exchange.send_of(call.root), call.bytes,
         store_for(context, call.bytes * std::size_t(context.size())));
  finish_direct(context, call.root);
}

void shares(CollectiveContext& context, const Call& call, int first, int last) {
  const auto store = store_for(context, call.bytes * std::size_t(context.size()));
  for (int r = first; r < last; ++r)
    if (r != call.root) put(context.exchange.recv_of(r), context.exchange.send_of(call.root), call.bytes, store);
}

// ---- estimates (costs.hpp)
double line_cost(const Shape& s, const Call& call) {
  return hop_from_root(s, lines_ahead) + copying(s, 2 * in_bytes(call), 0);
}
double slots_cost(const Shape& s, const Call& call) {
  return hop_from_root(s, slots_ahead) + copying(s, in_bytes(call), 0) + keeping(s, in_bytes(call), 0) +
         constants::line_overlapped * line_within(s, s.size);
}
double down_cost(const Shape& s, const Call& call) { return tree_cost(s, -1, in_bytes(call)); }
double pipeline_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * (s.size + 1);
  if (!s.oversubscribed()) return pipelined(s, n, filling(s, n, all), emptying(s, n, all));
  return (s.deep() ? hop_from_root(s) : 0) + rounds_of(s, n, buffers_ahead) +
         copying(s, constants::oversubscribed_bcast_copies * n, all);
}
double direct_cost(const Shape& s, const Call& call) {
  return buffer_exchange(s) + copying(s, in_bytes(call) * (s.size - 1) / s.size, in_bytes(call) * s.size);
}
double direct_pull_cost(const Shape& s, const Call& call) {
  return buffer_exchange(s) + copying(s, in_bytes(call), in_bytes(call) * s.size);
}

constexpr Algorithm rows[] = {
    {"line", Collective::bcast, fits_line, line_cost, RowBody(dense<small<Lines>>, ready<Lines>),
     "the root puts its data into its ring of short records, up to 120 bytes"},
    {"slots", Collective::bcast, fits_slot, slots_cost, RowBody(dense<small<Slots>>, ready<Slots>),
     "the root puts its data into its slot, up to 4 KiB"},
    {"tree", Collective::bcast, down_fits, down_cost, RowBody(dense<tree>, rings_ready),
     "data go down the team's tree, up to 4 KiB", staged, nullptr, worth_climbing},
    {"pipeline", Collective::bcast, always, pipeline_cost, RowBody(pipeline, chunks_ready),
     "the root passes its data on in chunks, through its copy buffers"},
    {"direct", Collective::bcast, always, direct_cost, direct,
     "between user buffers: root and receivers share the copies", all_buffers},
    {"direct-pull", Collective::bcast, always, direct_pull_cost, direct_pull,
     "every receiver copies out of the root's buffer", send_buffers},
    {"together", Collective::bcast, always, together, nullptr,
     "between user buffers: the ranks that have a CPU make the copies of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> bcast_rows() { return rows; }

}  // namespace nearfield::collectives
