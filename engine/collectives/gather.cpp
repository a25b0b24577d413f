// Gather.
//
// pipeline:  senders  wait until the root consumed c - 4, copy in chunk c, post(c)
//            root     for each sender: wait posted(c), copy out; then consume(c)
#include "engine/collectives/block_costs.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

template <class Ring>
void small(Team& team, const Call& call) {
  const std::uint64_t seq = Ring::next(team);
  Lengths lengths(team, call.bytes);
  if (team.rank() == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + call.root * call.bytes, call.send, call.bytes);
    for (int i = 1; i < team.size(); ++i) {
      const int r = (call.root + i) % team.size();
      const std::byte* const from = Ring::wait(team, r, seq);
      const std::size_t bytes = Ring::bytes(team, r, seq);
      lengths.look(r, bytes);
      put(out + r * call.bytes, from, std::min(bytes, call.bytes));
    }
  } else {
    stage(Ring::reserve(team, seq), call.send, call.bytes);
    Ring::publish(team, seq, call.bytes);
  }
  Ring::finish(team, seq);
  lengths.report();
}

void tree(Team& team, const Call& call) {
  rooted_by_tree(team, branch_bytes(team.shape(), call.bytes), [&]<class Ring>(std::uint64_t seq, Ring) {
    gather_up<Ring>(team, seq, call.root, call.send, call.bytes, team.inputs());
    if (team.rank() != call.root) return;
    for (int r = 0; r < team.size(); ++r)
      put(static_cast<std::byte*>(call.recv) + r * call.bytes, team.inputs()[r], call.bytes);
  });
}

void pipeline(Team& team, const Call& call) {
  const std::size_t chunk = chunk_bytes(team, call.bytes), chunks = divide_up(call.bytes, chunk);
  const int p = team.size();
  const auto stores = stores_for(team.shape(), 2 * double(call.bytes) * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  team.begin_rooted_rounds();
  const std::uint64_t first = team.tick() + 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t at = c * chunk, bytes = std::min(chunk, call.bytes - at);
    const std::uint64_t tick = first + c;
    if (team.rank() == call.root) {
      put(out + call.root * call.bytes + at, in + at, bytes, stores);
      std::uint64_t took = 0;
      for (int i = 1; i < p; ++i) {
        const int r = (call.root + i) % p;
        team.wait_posted(r, tick);
        const std::uint64_t begun = team.begin_reading(tick, r);
        put_from(team, r, tick, out + r * call.bytes + at, team.buffer(r, tick), bytes, stores);
        if (begun) took += processor::ticks() - begun;
      }
      team.tell_reading(tick, took);
      team.consume(tick);
    } else {
      // In the first rounds of an operation the readers are those of an earlier one, whoever they were.
      if (c < team::buffers) team.wait_buffer_free(tick);
      else team.wait_consumed(call.root, tick - team::buffers);
      stage_in(team, team.my_buffer(tick, bytes, Team::Passing::copied, call.root), in + at, bytes);
      team.post(tick);
    }
  }
  copying::fence();
  team.advance(chunks);
  if (team.rank() != call.root) team.consume(team.tick());
}

// Root and senders share the work: the root fetches a part of each block where it has no copy of its
// own to make.
void direct(Team& team, const Call& call) {
  const int p = team.size(), me = team.rank();
  const auto part = root_share(team, call);
  const auto store = store_for(team, 2 * call.bytes * std::size_t(p));
  if (me == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + me * call.bytes, call.send, call.bytes, store);
    for (int i = 1; i < p; ++i) {
      const int r = (me + i) % p;
      put(out + r * call.bytes + part.first, team.send_of(r) + part.first, part.rest, store);
    }
  } else {
    put(team.recv_of(call.root) + me * call.bytes, call.send, part.first, store);
  }
  finish_direct(team, call.root);
}

void shares(Team& team, const Call& call, int first, int last) {
  const auto store = store_for(team, 2 * call.bytes * std::size_t(team.size()));
  for (int r = first; r < last; ++r) put(team.recv_of(call.root) + r * call.bytes, team.send_of(r), call.bytes, store);
}

double up_cost(const Shape& s, const Call& call) { return tree_cost(s, 2 * in_bytes(call) * s.size, -1); }

constexpr Algorithm rows[] = {
    {"line", Collective::gather, fits_line, blocks::line, small<Lines>,
     "payload in lines of the senders' deep rings, up to 120 bytes"},
    {"slots", Collective::gather, fits_slot, blocks::slots, small<Slots>,
     "payload in every sender's slot, up to 4 KiB"},
    {"tree", Collective::gather, up_fits, up_cost, tree, "payload along the team's tree, up to 4 KiB below a leader",
     staged, nullptr, worth_climbing},
    {"pipeline", Collective::gather, always, blocks::pipeline, pipeline, "chunks through the senders' copy buffers"},
    {"direct", Collective::gather, always, blocks::direct, direct,
     "between user buffers: root and senders share the copies", all_buffers, nullptr, nullptr, 0.3},
    {"together", Collective::gather, always, blocks::together, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> gather_rows() { return rows; }

}  // namespace nearfield::collectives
