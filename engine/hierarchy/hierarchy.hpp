// A communicator whose ranks live on several nodes: a team on each node, lanes between them.
//
//            node 0          node 1          node 2
//   lane 0   rank a ........ rank d ........ rank f     a lane: one rank of each node, in order of the nodes;
//   lane 1   rank b ........ rank e ........ rank f     on smaller nodes a rank serves in several
//   lane 2   rank c ........ rank d ........ rank f
//            \ team /        \ team /        (alone)
//
// A collective is made of *node phases*, collectives of the node's team, and of *transfers* along lanes, which the host
// carries (transport.hpp) and which move bytes only. Operands are combined by ranks: those of a node in the order of
// its ranks, then the nodes' results in the order of nodes. All ranks go through the same phases in the same order;
// a transfer is started by its lane's ranks alone, and goes on while they are in node phases.
//
// One thread at a time uses it, as a context.
#pragma once
#include <memory>
#include <vector>

#include "engine/choosing/chooser.hpp"
#include "engine/context/context.hpp"
#include "engine/hierarchy/placement.hpp"
#include "engine/hierarchy/shape.hpp"
#include "engine/hierarchy/transport.hpp"

namespace nearfield::hierarchy {

using collectives::Call;
using collectives::Collective;

class Hierarchy {
 public:
  // Our node's part: nullptr where we are alone on it.
  struct Near {
    std::unique_ptr<team::Team> team;
    std::unique_ptr<choosing::Chooser> chooser;
  };
  Hierarchy(team::Process& node, Placement placement, int rank, Near near, std::unique_ptr<Transport> transport);
  ~Hierarchy();

  bool reproducible = false;  // whether reductions keep rank order whatever the placement; as the first rank says

  const Placement& placement() const { return placement_; }
  const HierarchyShape& shape() const { return shape_; }
  void set_shape(const HierarchyShape& shape) { shape_ = shape; }  // pre: it is the first rank's
  int rank() const { return rank_; }
  int size() const { return placement_.size(); }
  int node() const { return placement_.node_of(rank_); }
  int nodes() const { return placement_.nodes(); }
  int local() const { return placement_.local_of(rank_); }
  int locals() const { return placement_.ranks_on(node()); }
  team::Team* team() const { return near_.team.get(); }
  choosing::Chooser* node_chooser() const { return near_.chooser.get(); }
  Transport& transport() { return *transport_; }
  team::Process& home() const { return home_; }

  // ---- node phases: collectives of the node's ranks, whose roots are locals. Those of no bytes do nothing.
  void node_barrier();
  void node_bcast(void* buffer, std::size_t bytes, int root);
  void node_gather(const void* one, void* all, std::size_t bytes, int root);
  void node_scatter(const void* all, void* one, std::size_t bytes, int root);
  void node_allgather(const void* one, void* all, std::size_t bytes);
  void node_alltoall(const void* from, void* into, std::size_t bytes);
  // `count`: elements of the call's type in a vector, or in a block of reduce_scatter_block.
  void node_reduce(const Call& call, const void* send, void* recv, std::size_t count, int root);
  void node_reduce_scatter_block(const Call& call, const void* send, void* recv, std::size_t count);

  // ---- transfers
  bool in_lane(int lane) const { return placement_.in_lane(lane, node()) == local(); }
  // All ranks call it before the first transfer of a call.
  void open(int lane) { transport_->open(lane); }
  void open_all() {
    for (int lane = 0; lane < placement_.most(); ++lane) transport_->open(lane);
  }
  void start(unsigned slot, int lane, const LaneTransfer& transfer) {
    transport_->start(slot, lane, transfer);
    ++under_way_;
  }
  // From now on Rooms stay allocated if an exception is thrown: until let_go(), for others that store to Rooms of ours;
  // or until wait(), for a transfer that has been started by the transport itself.
  void hold() { ++under_way_; }
  void let_go() { --under_way_; }
  void wait(unsigned slot);

  // Memory for a phase: in our segment, where peers can reach it, if that has room.
  class Room {
   public:
    Room() = default;
    Room(Hierarchy& hierarchy, std::size_t bytes);  // throws std::bad_alloc; nothing for no bytes
    Room(Room&& other) noexcept
        : hierarchy_(other.hierarchy_), at_(std::exchange(other.at_, nullptr)), offset_(other.offset_) {}
    Room& operator=(Room&& other) noexcept {
      std::swap(hierarchy_, other.hierarchy_);
      std::swap(at_, other.at_);
      std::swap(offset_, other.offset_);
      return *this;
    }
    ~Room();
    std::byte* data() const { return at_; }
    std::size_t offset() const { return offset_; }  // in our segment; 0: it is elsewhere

   private:
    Hierarchy* hierarchy_ = nullptr;
    std::byte* at_ = nullptr;
    std::size_t offset_ = 0;  // 0: not in the segment
  };

 private:
  void on_node(Call call);
  void on_node_by_transport(const Call& call);

  team::Process& home_;
  const Placement placement_;
  const int rank_;
  HierarchyShape shape_;
  Near near_;
  std::unique_ptr<Transport> transport_;
  unsigned under_way_ = 0;  // transfers, and stores of others to Rooms of ours
};

}  // namespace nearfield::hierarchy
