// Gather.
#include "engine/collectives/block_costs.hpp"
#include "engine/collectives/pieces/chunks.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(Track& track, const Call& call) {
  const std::uint64_t seq = Ring::next(track);
  Lengths lengths(track, call.bytes);
  if (track.rank() == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + call.root * call.bytes, call.send, call.bytes);
    for (int i = 1; i < track.size(); ++i) {
      const int r = (call.root + i) % track.size();
      const std::byte* const from = Ring::wait(track, r, seq);
      const std::size_t bytes = Ring::bytes(track, r, seq);
      lengths.look(r, bytes);
      put(out + r * call.bytes, from, std::min(bytes, call.bytes));
    }
  } else {
    stage(Ring::reserve(track, seq), call.send, call.bytes);
    Ring::publish(track, seq, call.bytes);
  }
  Ring::finish(track, seq);
  lengths.report();
}

void tree(Track& track, const Call& call) {
  Lengths lengths(track, call.bytes);
  rooted_by_tree(track, branch_bytes(track.shape(), call.bytes), [&]<class Ring>(std::uint64_t seq, Ring) {
    gather_up<Ring>(track, seq, call.root, call.send, call.bytes, track.inputs(), lengths);
    if (track.rank() != call.root) return;
    for (int r = 0; r < track.size(); ++r)
      put(static_cast<std::byte*>(call.recv) + r * call.bytes, track.inputs()[r], call.bytes);
  });
  lengths.report();
}

void pipeline(Track& track, const Call& call) {
  const int p = track.size();
  const auto stores = stores_for(track.shape(), 2 * double(call.bytes) * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  const auto most = [&](std::size_t length) { return chunk_bytes(track, length); };
  rooted_by_chunks(
      track, call, most,
      [&](const Chunk& c) {
        stage_in(track, track.my_buffer(c.tick, c.bytes, Track::Passing::copied, call.root), in + c.at, c.bytes);
      },
      [&](const Chunk& c) { put(out + call.root * call.bytes + c.at, in + c.at, c.bytes, stores); },
      [&](const Chunk& c) {
        std::uint64_t took = 0;
        for (int i = 1; i < p; ++i) {
          const int r = (call.root + i) % p;
          took += read_chunk(track, r, c, [&](const std::byte* from) {
            const Chunk theirs = of_sender(track, call, r, c, most);
            put_from(track, r, c.tick, out + r * call.bytes + theirs.at, from, theirs.bytes, stores);
          });
        }
        return took;
      });
}

// Root and senders share the work: the root fetches a part of each block where it has no copy of its
// own to make.
void direct(Track& track, const Call& call) {
  const int p = track.size(), me = track.rank();
  const auto store = store_for(track, 2 * call.bytes * std::size_t(p));
  if (me == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + me * call.bytes, call.send, call.bytes, store);
    for (int i = 1; i < p; ++i) {
      const int r = (me + i) % p;
      const auto part = root_share(track, call, r);
      put(out + r * call.bytes + part.first, track.send_of(r) + part.first, part.rest, store);
    }
  } else {
    put(track.recv_of(call.root) + me * exposed_length(track, call.root), call.send, root_share(track, call, me).first,
        store);
  }
  finish_direct(track, call.root);
}

void shares(Track& track, const Call& call, int first, int last) {
  const auto store = store_for(track, 2 * call.bytes * std::size_t(track.size()));
  for (int r = first; r < last; ++r)
    put(track.recv_of(call.root) + r * exposed_length(track, call.root), track.send_of(r),
        exposed_block(track, call.root, r), store);
}

double up_cost(const Shape& s, const Call& call) { return tree_cost(s, 2 * in_bytes(call) * s.size, -1); }

constexpr Algorithm rows[] = {
    with_ready({"line", Collective::gather, fits_line, blocks::line, small<Lines>,
                "payload in lines of the senders' deep rings, up to 120 bytes"},
               Lines::ready),
    with_ready({"slots", Collective::gather, fits_slot, blocks::slots, small<Slots>,
                "payload in every sender's slot, up to 4 KiB"},
               Slots::ready),
    with_ready({"tree", Collective::gather, up_fits, up_cost, tree,
                "payload along the team's tree, up to 4 KiB below a leader", staged, nullptr, worth_climbing},
               rings_ready),
    with_ready({"pipeline", Collective::gather, always, blocks::pipeline, pipeline,
                "chunks through the senders' copy buffers"},
               chunks_ready),
    {"direct", Collective::gather, always, blocks::direct, direct,
     "between user buffers: root and senders share the copies", all_buffers, nullptr, nullptr, 0.3},
    {"together", Collective::gather, always, together, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> gather_rows() { return rows; }

}  // namespace nearfield::collectives
