// Reduce and Allreduce over nodes.
//
//   leader     the node's ranks reduce to one, leaders combine, and (allreduce) each gives the result to its node
//   lanes      the node's ranks reduce-scatter, each lane combines its share, and the node's ranks gather the shares:
//              the full-lane algorithms of Traeff and Hunold, "Decomposing MPI Collectives for Exploiting Multi-lane
//              Communication", CLUSTER 2020
//   pipelined  the same in chunks
#include "engine/hierarchy/across.hpp"
#include "engine/hierarchy/costs.hpp"
#include "engine/hierarchy/groups.hpp"
#include "engine/hierarchy/pipeline.hpp"

namespace nearfield::hierarchy {
namespace {

class ReductionOverNodes {
 public:
  // `chunks`: of what goes by lanes where lanes are used, else of all. What lanes cannot share evenly, fewer elements
  // than ranks of a node, goes by a leader, as one chunk more.
  ReductionOverNodes(Hierarchy& hierarchy, const Call& call, bool lanes, std::size_t chunks)
      : s_(hierarchy),
        call_(call),
        element_(reducing::size_of(call.type)),
        by_lanes_(lanes ? call.count / std::size_t(hierarchy.locals()) : 0),
        chunks_(lanes ? std::min(chunks, by_lanes_) : 0) {
    const bool to_all = call.collective == Collective::allreduce;
    to_ = to_all ? Across::all : hierarchy.placement().node_of(call.root);
    lead_ = to_all ? 0 : hierarchy.placement().local_of(call.root);
    rest_ = by_lanes_ * std::size_t(hierarchy.locals());
    rest_chunks_ = rest_ < call.count ? lanes ? 1 : std::min(chunks, call.count) : 0;
  }

  void run() {
    if (chunks_) s_.open_all();
    else s_.open(lead_);
    pipeline(chunks_ + rest_chunks_, {[&](std::size_t c) { reduce_on_node(c); }, [&](std::size_t c) { begin(c); },
                                      [&](std::size_t c) { middle(c); }, [&](std::size_t c) { finish(c); }});
  }

 private:
  struct Part {
    bool lanes = false, carries = false;  // whether we are in its transfers
    std::size_t begin = 0, count = 0;     // elements: of all; of a share by lanes, else of all
    Hierarchy::Room partial, shared;
    std::byte* result = nullptr;
    Across across;
  };
  Part& part(std::size_t chunk) { return parts_[chunk % chunks_under_way]; }
  const std::byte* send(std::size_t element) const {
    return static_cast<const std::byte*>(call_.send) + element * element_;
  }
  std::byte* recv(std::size_t element) const { return static_cast<std::byte*>(call_.recv) + element * element_; }
  bool to_all() const { return to_ == Across::all; }
  bool is_root() const { return !to_all() && s_.rank() == call_.root; }

  void reduce_on_node(std::size_t chunk) {
    Part& p = part(chunk) = {};
    p.lanes = chunk < chunks_;
    const auto locals = std::size_t(s_.locals()), local = std::size_t(s_.local());
    if (p.lanes) {
      const Stretch own = stretch(by_lanes_, chunks_, chunk);
      p.begin = own.begin * locals;
      p.count = own.count;
      p.carries = true;
      p.partial = Hierarchy::Room(s_, p.count * element_);
      s_.node_reduce_scatter_block(call_, send(p.begin), p.partial.data(), p.count);
      if (to_all() || is_root()) {
        p.result = recv(p.begin + local * p.count);
      } else if (to_ == s_.node()) {
        p.shared = Hierarchy::Room(s_, p.count * element_);
        p.result = p.shared.data();
      }
      return;
    }
    const Stretch own = stretch(call_.count - rest_, rest_chunks_, chunk - chunks_);
    p.begin = rest_ + own.begin;
    p.count = own.count;
    p.carries = s_.in_lane(lead_);
    if (s_.locals() > 1) {
      p.partial = Hierarchy::Room(s_, p.carries ? p.count * element_ : 0);
      s_.node_reduce(call_, send(p.begin), p.partial.data(), p.count, leader());
    }
    if (to_all() || is_root()) p.result = recv(p.begin);
  }
  void begin(std::size_t chunk) {
    Part& p = part(chunk);
    if (!p.carries) return;
    const int lane = p.lanes ? s_.local() : lead_;
    p.across = Across(s_, lane, to_, call_, unsigned(2 * (chunk % chunks_under_way)));
    p.across.begin(p.partial.data() ? p.partial.data() : send(p.begin), p.count, p.result);
  }
  void middle(std::size_t chunk) {
    if (part(chunk).carries) part(chunk).across.middle();
  }
  void finish(std::size_t chunk) {
    Part& p = part(chunk);
    if (p.carries) p.across.end();
    const std::size_t bytes = p.count * element_;
    if (!p.lanes) {
      if (to_all()) s_.node_bcast(recv(p.begin), bytes, leader());
    } else if (to_all()) {
      s_.node_allgather(p.result, recv(p.begin), bytes);
    } else if (to_ == s_.node()) {
      s_.node_gather(p.result, is_root() ? recv(p.begin) : nullptr, bytes, lead_);
    }
  }
  int leader() const { return s_.placement().in_lane(lead_, s_.node()); }

  Hierarchy& s_;
  const Call& call_;
  const std::size_t element_, by_lanes_, chunks_;
  int to_ = Across::all, lead_ = 0;
  std::size_t rest_ = 0, rest_chunks_ = 0;
  Part parts_[chunks_under_way];
};

}  // namespace

void reduce_by_leaders(Hierarchy& hierarchy, const Call& call) { ReductionOverNodes(hierarchy, call, false, 1).run(); }
void reduce_by_lanes(Hierarchy& hierarchy, const Call& call) { ReductionOverNodes(hierarchy, call, true, 1).run(); }
void reduce_in_chunks(Hierarchy& hierarchy, const Call& call) {
  ReductionOverNodes(hierarchy, call, lanes_apply(hierarchy.shape(), call),
                     std::size_t(chunks(hierarchy.shape(), call)))
      .run();
}

}  // namespace nearfield::hierarchy
