// Allgather, Gather and Scatter over nodes.
//
//   leader   the leader of a node gathers (or scatters) the blocks of its ranks; one part goes to (or from) each node
//   lanes    each rank's block crosses by its own lane. The root's node (in an allgather all nodes) divides the blocks
//            among lanes before that in a scatter, and puts them together after that in a gather or allgather
#include "engine/hierarchy/blocks.hpp"
#include "engine/hierarchy/groups.hpp"

namespace nearfield::hierarchy {

using Room = Hierarchy::Room;

void allgather_by_leaders(Hierarchy& s, const Call& call) {
  constexpr int lane = 0;
  const Placement& places = s.placement();
  const std::size_t all = std::size_t(s.size()) * call.bytes;
  auto* const recv = static_cast<std::byte*>(call.recv);
  const bool leads = s.in_lane(lane);
  const Room room(s, leads && !places.blocks() ? all : 0);
  std::byte* const base = room.data() ? room.data() : recv;
  const PartsOfNodes parts = by_ranks(places, call.bytes);
  std::byte* const own = base + parts.at[std::size_t(s.node())];
  s.open(lane);
  s.node_gather(call.send, leads ? own : nullptr, call.bytes, 0);
  if (leads) {
    s.start(0, lane,
            {.move = Move::allgather, .one = own, .bytes = parts.bytes[std::size_t(s.node())], .into = parts.in(base)});
    s.wait(0);
    if (room.data()) to_rank_order(places, recv, base, call.bytes);
  }
  s.node_bcast(recv, all, 0);
}

void allgather_by_lanes(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const auto n = std::size_t(s.nodes()), p = std::size_t(s.locals()), local = std::size_t(s.local());
  const std::size_t bytes = call.bytes;
  auto* const recv = static_cast<std::byte*>(call.recv);
  const bool direct = places.blocks() || places.striped();
  const Room lane_room(s, direct ? 0 : n * bytes);
  // Where this lane's blocks go: to their places, where those are regular.
  std::byte* const into = !direct ? lane_room.data() : recv + local * (places.blocks() ? 1 : n) * bytes;
  const PartsOfNodes parts = equal_parts(places, bytes, places.blocks() ? p * bytes : bytes);
  s.open_all();
  s.start(0, s.local(),
          {.move = Move::allgather,
           .one = static_cast<const std::byte*>(call.send),
           .bytes = bytes,
           .into = parts.in(into)});
  s.wait(0);
  if (places.blocks()) {
    for (std::size_t node = 0; node < n; ++node) {
      std::byte* const of_node = recv + node * p * bytes;
      s.node_allgather(of_node + local * bytes, of_node, bytes);
    }
  } else if (direct) {
    s.node_allgather(into, recv, n * bytes);
  } else {
    const Room room(s, n * p * bytes);
    s.node_allgather(into, room.data(), n * bytes);
    lanes_to_rank_order(places, recv, room.data(), bytes);
  }
}

void gather_by_leaders(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const int lane = places.local_of(call.root), leader = places.in_lane(lane, s.node()),
            root = places.node_of(call.root);
  const bool leads = s.in_lane(lane), is_root = s.rank() == call.root;
  const PartsOfNodes parts = by_ranks(places, call.bytes);
  const std::size_t node = std::size_t(s.node());
  const bool in_place = is_root && places.blocks();  // blocks arrive where they belong
  const Room room(s, is_root ? in_place ? 0 : std::size_t(s.size()) * call.bytes : leads ? parts.bytes[node] : 0);
  std::byte* const base = in_place ? static_cast<std::byte*>(call.recv) : room.data();
  std::byte* const own = is_root ? base + parts.at[node] : base;
  s.open(lane);
  s.node_gather(call.send, leads ? own : nullptr, call.bytes, leader);
  if (!leads) return;
  s.start(0, lane,
          {.move = Move::gather, .root = root, .one = own, .bytes = parts.bytes[node], .into = parts.in(base)});
  s.wait(0);
  if (is_root && !in_place) to_rank_order(places, static_cast<std::byte*>(call.recv), base, call.bytes);
}

void gather_by_lanes(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const int root = places.node_of(call.root);
  const auto n = std::size_t(s.nodes());
  const bool is_root = s.rank() == call.root, near_root = s.node() == root;
  const Room lane_room(s, near_root ? n * call.bytes : 0);
  const PartsOfNodes parts = equal_parts(places, call.bytes, call.bytes);
  s.open_all();
  s.start(0, s.local(),
          {.move = Move::gather,
           .root = root,
           .one = static_cast<const std::byte*>(call.send),
           .bytes = call.bytes,
           .into = parts.in(lane_room.data())});
  s.wait(0);
  if (!near_root) return;
  const Room room(s, is_root && !places.striped() ? std::size_t(s.size()) * call.bytes : 0);
  s.node_gather(lane_room.data(), room.data() ? room.data() : call.recv, n * call.bytes, places.local_of(call.root));
  if (room.data()) lanes_to_rank_order(places, static_cast<std::byte*>(call.recv), room.data(), call.bytes);
}

namespace {
// Whether the root's own block stays where it is: nothing of its send buffer may be stored to.
bool keeps_own(const Hierarchy& s, const Call& call) {
  return s.rank() == call.root &&
         call.recv == static_cast<const std::byte*>(call.send) + std::size_t(call.root) * call.bytes;
}
}  // namespace

void scatter_by_leaders(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const int lane = places.local_of(call.root), leader = places.in_lane(lane, s.node()),
            root = places.node_of(call.root);
  const bool leads = s.in_lane(lane), is_root = s.rank() == call.root, direct = is_root && places.blocks();
  const PartsOfNodes parts = by_ranks(places, call.bytes);
  const std::size_t node = std::size_t(s.node());
  auto* const send = static_cast<std::byte*>(const_cast<void*>(call.send));
  const Room room(s, is_root ? direct ? 0 : std::size_t(s.size()) * call.bytes : leads ? parts.bytes[node] : 0);
  const Room unused(s, !direct && keeps_own(s, call) ? call.bytes : 0);
  std::byte* const base = direct ? send : room.data();
  if (is_root && !direct) to_node_order(places, base, send, call.bytes);
  std::byte* const own = is_root ? base + parts.at[node] : base;
  s.open(lane);
  if (leads) {
    s.start(0, lane,
            {.move = Move::scatter, .root = root, .to = own, .bytes = parts.bytes[node], .from = parts.in(base)});
    s.wait(0);
  }
  s.node_scatter(leads ? own : nullptr, unused.data() ? unused.data() : call.recv, call.bytes, leader);
}

void scatter_by_lanes(Hierarchy& s, const Call& call) {
  const Placement& places = s.placement();
  const int root = places.node_of(call.root);
  const auto n = std::size_t(s.nodes());
  const bool is_root = s.rank() == call.root, near_root = s.node() == root;
  const Room lane_room(s, near_root ? n * call.bytes : 0);
  const Room room(s, is_root && !places.striped() ? std::size_t(s.size()) * call.bytes : 0);
  const Room unused(s, keeps_own(s, call) ? call.bytes : 0);
  if (room.data()) rank_order_to_lanes(places, room.data(), static_cast<const std::byte*>(call.send), call.bytes);
  s.open_all();
  if (near_root)
    s.node_scatter(room.data() ? room.data() : call.send, lane_room.data(), n * call.bytes, places.local_of(call.root));
  const PartsOfNodes parts = equal_parts(places, call.bytes, call.bytes);
  auto* const to = unused.data() ? unused.data() : static_cast<std::byte*>(call.recv);
  s.start(0, s.local(),
          {.move = Move::scatter, .root = root, .to = to, .bytes = call.bytes, .from = parts.in(lane_room.data())});
  s.wait(0);
}

}  // namespace nearfield::hierarchy
