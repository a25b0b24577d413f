// Scatter.
//
// pipeline:  root    wait until everybody consumed c - 4, copy in a piece for each rank, post(c)
//            others  wait posted(c), copy out their piece, consume(c)
#include "engine/collectives/block_costs.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(Team& team, const Call& call) {
  const std::uint64_t seq = Ring::next(team);
  Lengths lengths(team, call.bytes * team.size());
  if (team.rank() == call.root) {
    const auto* in = static_cast<const std::byte*>(call.send);
    stage(Ring::reserve(team, seq), in, call.bytes * team.size());
    Ring::publish(team, seq, call.bytes * team.size());
    put(call.recv, in + call.root * call.bytes, call.bytes);
  } else {
    const std::byte* const from = Ring::wait(team, call.root, seq);
    lengths.look(call.root, Ring::bytes(team, call.root, seq));
    put(call.recv, from + team.rank() * call.bytes, call.bytes);
  }
  Ring::finish(team, seq);
  lengths.report();
}

void tree(Team& team, const Call& call) {
  rooted_by_tree(team, call.bytes * std::size_t(team.size()), [&]<class Ring>(std::uint64_t seq, Ring) {
    scatter_down<Ring>(team, seq, call.root, call.send, call.recv, call.bytes);
  });
}

void pipeline(Team& team, const Call& call) {
  const int p = team.size(), me = team.rank();
  const std::size_t piece = std::min(round_bytes(team, call.bytes, p - 1), chunk_bytes(team, call.bytes));
  const std::size_t place = place_bytes(team, piece, p - 1), chunks = divide_up(call.bytes, piece);
  const auto stores = stores_for(team.shape(), 2 * double(call.bytes) * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  team.begin_rooted_rounds();
  const std::uint64_t first = team.tick() + 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t at = c * piece, bytes = std::min(piece, call.bytes - at);
    const std::uint64_t tick = first + c;
    if (me == call.root) {
      team.wait_buffer_free(tick);
      std::byte* const buffer = team.my_buffer(tick, (p - 1) * place, Team::Passing::copied);
      for (int i = 1; i < p; ++i) {
        const int to = (me + i) % p;
        stage_in(team, buffer + (i - 1) * place, in + to * call.bytes + at, bytes);
      }
      team.post(tick);
      put(out + at, in + me * call.bytes + at, bytes, stores);
    } else {
      team.wait_posted(call.root, tick);
      const std::uint64_t begun = team.begin_reading(tick, call.root);
      put_from(team, call.root, tick, out + at, team.buffer(call.root, tick) + ((me + p - call.root) % p - 1) * place,
               bytes, stores);
      team.end_reading(tick, begun);
      team.consume(tick);
    }
  }
  copying::fence();
  team.advance(chunks);
  if (me == call.root) team.consume(team.tick());
}

// Root and receivers share the work: the root stores a part of each block where it has no copy of
// its own to make.
void direct(Team& team, const Call& call) {
  const int p = team.size(), me = team.rank();
  const auto part = root_share(team, call);
  const auto store = store_for(team, 2 * call.bytes * std::size_t(p));
  if (me == call.root) {
    const auto* in = static_cast<const std::byte*>(call.send);
    for (int i = 1; i < p; ++i) {
      const int r = (me + i) % p;
      put(team.recv_of(r) + part.first, in + r * call.bytes + part.first, part.rest, store);
    }
    put(call.recv, in + me * call.bytes, call.bytes, store);
  } else {
    put(call.recv, team.send_of(call.root) + me * call.bytes, part.first, store);
  }
  finish_direct(team, call.root);
}

void shares(Team& team, const Call& call, int first, int last) {
  const auto store = store_for(team, 2 * call.bytes * std::size_t(team.size()));
  for (int r = first; r < last; ++r) put(team.recv_of(r), team.send_of(call.root) + r * call.bytes, call.bytes, store);
}

double down_cost(const Shape& s, const Call& call) { return tree_cost(s, -1, in_bytes(call) * s.size); }

constexpr Algorithm rows[] = {
    {"line", Collective::scatter, all_fit_line, blocks::line, small<Lines>,
     "all blocks in a line of the root's deep ring, up to 120 bytes together"},
    {"slots", Collective::scatter, all_fit_slot, blocks::slots, small<Slots>,
     "all blocks in the root's slot, up to 4 KiB together"},
    {"tree", Collective::scatter, all_down_fit, down_cost, tree,
     "all blocks along the team's tree, up to 4 KiB together", staged, nullptr, worth_climbing},
    {"pipeline", Collective::scatter, buffer_has_places, blocks::pipeline, pipeline,
     "a piece of every block through the root's copy buffers"},
    {"direct", Collective::scatter, always, blocks::direct, direct,
     "between user buffers: root and receivers share the copies", all_buffers},
    {"together", Collective::scatter, always, blocks::together, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> scatter_rows() { return rows; }

}  // namespace nearfield::collectives
