// Gather.
//
// pipeline:  senders  wait until the root consumed c - 4, copy in chunk c, post(c)
//            root     for each sender: wait posted(c), copy out; then consume(c)
#include "engine/collectives/direct.hpp"

namespace nearfield::collectives {
namespace {

void line(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_line();
  if (team.rank() == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + call.root * call.bytes, call.send, call.bytes);
    for (int i = 1; i < team.size(); ++i) {
      const int r = (call.root + i) % team.size();
      put(out + r * call.bytes, team.wait_line(r, seq), call.bytes);
    }
  } else {
    put(team.reserve_line(seq), call.send, call.bytes);
    team.publish_line(seq);
  }
  team.finish_line(seq);
}

void slots(Team& team, const Call& call) {
  const std::uint64_t seq = team.next_slot();
  if (team.rank() == call.root) {
    auto* out = static_cast<std::byte*>(call.recv);
    put(out + call.root * call.bytes, call.send, call.bytes);
    for (int i = 1; i < team.size(); ++i) {
      const int r = (call.root + i) % team.size();
      put(out + r * call.bytes, team.wait_slot(r, seq), call.bytes);
    }
  } else {
    put(team.reserve_slot(seq), call.send, call.bytes);
    team.publish_slot(seq, call.bytes);
  }
  team.finish_rooted_slot(seq);
}

void pipeline(Team& team, const Call& call) {
  const std::size_t chunk = chunk_bytes(team, call.bytes), chunks = divide_up(call.bytes, chunk);
  const int p = team.size();
  const auto store = store_for(team, 2 * call.bytes * p);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  team.begin_rooted_rounds();
  const std::uint64_t first = team.tick() + 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t at = c * chunk, bytes = std::min(chunk, call.bytes - at);
    const std::uint64_t tick = first + c;
    if (team.rank() == call.root) {
      put(out + call.root * call.bytes + at, in + at, bytes, store);
      for (int i = 1; i < p; ++i) {
        const int r = (call.root + i) % p;
        team.wait_posted(r, tick);
        put(out + r * call.bytes + at, team.buffer(r, tick), bytes, store);
      }
      team.consume(tick);
    } else {
      // In the first rounds of an operation the readers are those of an earlier one, whoever they were.
      if (c < team::buffers) team.wait_buffer_free(tick);
      else team.wait_consumed(call.root, tick - team::buffers);
      put(team.my_buffer(tick), in + at, bytes);
      team.post(tick);
    }
  }
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

// ---- estimates (costs.hpp)
double line_cost(const Shape& s, const Call& call) { return hop(s) + copying(s, in_bytes(call) * s.size, 0); }
double slots_cost(const Shape& s, const Call& call) {
  return hop(s) + s.machine.line / 2 + copying(s, in_bytes(call) * s.size, 0);
}
double pipeline_cost(const Shape& s, const Call& call) {
  return rounds_of(s, in_bytes(call)) +
         copying(s, in_bytes(call) * s.size, 2 * in_bytes(call) * s.size) * (s.crowded() ? 6 * alone(s) : 1);
}
double direct_cost(const Shape& s, const Call& call) {
  return 2 * meeting(s) + copying(s, in_bytes(call), 2 * in_bytes(call) * s.size);
}
double together_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call) * s.size;
  return together(s, n, alone(s) * copying(s, n, 2 * n));
}

constexpr Algorithm rows[] = {
    {"line", Collective::gather, fits_line, line_cost, line,
     "payload in lines of the senders' deep rings, up to 120 bytes"},
    {"slots", Collective::gather, fits_slot, slots_cost, slots, "payload in every sender's slot, up to 4 KiB"},
    {"pipeline", Collective::gather, always, pipeline_cost, pipeline, "chunks through the senders' copy buffers"},
    {"direct", Collective::gather, always, direct_cost, direct,
     "between user buffers: root and senders share the copies", all_buffers},
    {"together", Collective::gather, always, together_cost, nullptr,
     "between user buffers: whoever runs makes the copies of all", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> gather_rows() { return rows; }

}  // namespace nearfield::collectives
