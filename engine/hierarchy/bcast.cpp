// Bcast and Barrier over nodes. The data crosses to each node once.
//
//   leader     from the root to a leader of every other node, and on each node from there
//   lanes      the root scatters it on its node, each lane passes on its share, and the other nodes gather the shares
//   pipelined  the same in chunks
#include "engine/hierarchy/costs.hpp"
#include "engine/hierarchy/groups.hpp"
#include "engine/hierarchy/pipeline.hpp"

namespace nearfield::hierarchy {
namespace {

class BroadcastOverNodes {
 public:
  BroadcastOverNodes(Hierarchy& hierarchy, const Call& call, bool lanes, std::size_t chunks)
      : s_(hierarchy),
        bytes_(call.bytes),
        by_lanes_(lanes ? call.bytes / std::size_t(hierarchy.locals()) : 0),
        chunks_(lanes ? std::min(chunks, by_lanes_) : 0),
        rest_(by_lanes_ * std::size_t(hierarchy.locals())),
        rest_chunks_(rest_ < bytes_ ? lanes ? 1 : std::min(chunks, bytes_) : 0),
        lead_(hierarchy.placement().local_of(call.root)),
        from_(hierarchy.placement().node_of(call.root)),
        is_root_(hierarchy.rank() == call.root),
        data_(static_cast<std::byte*>(is_root_ ? const_cast<void*>(call.send) : call.recv)) {}

  void run() {
    if (chunks_) s_.open_all();
    else s_.open(lead_);
    pipeline(chunks_ + rest_chunks_, {[&](std::size_t c) { start(c); }, [&](std::size_t c) { hierarchy(c); }});
  }

 private:
  // By lanes, `bytes` is the length of a share.
  struct Part {
    bool lanes;
    std::size_t begin, bytes;
    unsigned slot;
  };
  Part part(std::size_t chunk) const {
    const auto slot = unsigned(chunk % chunks_under_way);
    if (chunk < chunks_) {
      const Stretch own = stretch(by_lanes_, chunks_, chunk);
      return {true, own.begin * std::size_t(s_.locals()), own.count, slot};
    }
    const Stretch own = stretch(bytes_ - rest_, rest_chunks_, chunk - chunks_);
    return {false, rest_ + own.begin, own.count, slot};
  }
  std::byte* share(const Part& p) const { return data_ + p.begin + (p.lanes ? std::size_t(s_.local()) * p.bytes : 0); }
  bool carries(const Part& p) const { return p.lanes || s_.in_lane(lead_); }

  void start(std::size_t chunk) {
    const Part p = part(chunk);
    if (p.lanes && s_.node() == from_) s_.node_scatter(is_root_ ? data_ + p.begin : nullptr, share(p), p.bytes, lead_);
    if (!carries(p)) return;
    s_.start(p.slot, p.lanes ? s_.local() : lead_,
             {.move = Move::bcast, .root = from_, .to = share(p), .bytes = p.bytes});
  }
  void hierarchy(std::size_t chunk) {
    const Part p = part(chunk);
    const std::size_t whole = p.lanes ? p.bytes * std::size_t(s_.locals()) : p.bytes;
    if (s_.node() == from_) s_.node_bcast(data_ + p.begin, whole, lead_);  // nothing is stored in the root's
    if (carries(p)) s_.wait(p.slot);
    if (s_.node() == from_) return;
    if (p.lanes) s_.node_allgather(share(p), data_ + p.begin, p.bytes);
    else s_.node_bcast(data_ + p.begin, p.bytes, s_.placement().in_lane(lead_, s_.node()));
  }

  Hierarchy& s_;
  const std::size_t bytes_, by_lanes_, chunks_, rest_, rest_chunks_;
  const int lead_, from_;
  const bool is_root_;
  std::byte* const data_;
};

}  // namespace

void bcast_by_leaders(Hierarchy& hierarchy, const Call& call) { BroadcastOverNodes(hierarchy, call, false, 1).run(); }
void bcast_by_lanes(Hierarchy& hierarchy, const Call& call) { BroadcastOverNodes(hierarchy, call, true, 1).run(); }
void bcast_in_chunks(Hierarchy& hierarchy, const Call& call) {
  const bool lanes = lanes_apply(hierarchy.shape(), call);
  BroadcastOverNodes(hierarchy, call, lanes, std::size_t(chunks(hierarchy.shape(), call))).run();
}

void bcast_from_first(Hierarchy& hierarchy, void* data, std::size_t bytes) {
  const bool first = hierarchy.rank() == 0;
  bcast_by_leaders(hierarchy, {.collective = Collective::bcast,
                               .bytes = bytes,
                               .send = first ? data : nullptr,
                               .recv = first ? nullptr : data});
}

void barrier_by_leaders(Hierarchy& hierarchy, const Call&) {
  constexpr int lane = 0;
  hierarchy.open(lane);
  hierarchy.node_barrier();
  if (hierarchy.in_lane(lane)) {
    hierarchy.start(0, lane, {.move = Move::barrier});
    hierarchy.wait(0);
  }
  hierarchy.node_barrier();
}

}  // namespace nearfield::hierarchy
