// Bcast.
//
// pipeline:  root    copy in chunk c -> buffer, post(c) ............ wait until everybody consumed c - 4
//            others  wait posted(c), copy out, consume(c)
#include "engine/collectives/rounds.hpp"

namespace nearfield::collectives {
namespace {

void slots(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_slot();
  if (team.rank() == call.root) {
    put(team.reserve_slot(seq), call.send, call.bytes);
    team.publish_slot(seq, call.bytes);
  } else {
    put(call.recv, team.wait_slot(call.root, seq), call.bytes);
  }
  team.finish_rooted_slot(seq);
}

void pipeline(Team& team, const Call& call) {
  const std::size_t chunk = chunk_bytes(team, call.bytes), chunks = divide_up(call.bytes, chunk);
  const auto store = store_for(team, call.bytes * (team.size() + 1));
  team.begin_rooted_rounds();
  const std::uint64_t first = team.tick() + 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t at = c * chunk, bytes = std::min(chunk, call.bytes - at);
    const std::uint64_t tick = first + c;
    if (team.rank() == call.root) {
      team.wait_buffer_free(tick);
      put(team.my_buffer(tick), static_cast<const std::byte*>(call.send) + at, bytes);
      team.post(tick);
    } else {
      team.wait_posted(call.root, tick);
      put(static_cast<std::byte*>(call.recv) + at, team.buffer(call.root, tick), bytes, store);
      team.consume(tick);
    }
  }
  team.advance(chunks);
  if (team.rank() == call.root) team.consume(team.tick());
}

constexpr Algorithm rows[] = {
    {"slots", Collective::bcast, block_fits_slot, cheap, slots, "payload in the root's slot, up to 4 KiB"},
    {"pipeline", Collective::bcast, always, dear, pipeline, "chunks through the root's copy buffers"},
};

}  // namespace

std::span<const Algorithm> bcast_rows() { return rows; }

}  // namespace nearfield::collectives
