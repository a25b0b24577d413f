#include "engine/hierarchy/hierarchy.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/collectives/table.hpp"
#include "engine/hang_report/reporter.hpp"

namespace nearfield::hierarchy {

using collectives::Amount;

Hierarchy::Hierarchy(team::Process& node, Placement placement, int rank, Near near,
                     std::unique_ptr<Transport> transport)
    : home_(node),
      placement_(std::move(placement)),
      rank_(rank),
      near_(std::move(near)),
      transport_(std::move(transport)) {
  if (near_.team) shape_.node = near_.team->shape();
  else shape_.node.machine = node.machine();
  shape_.node.size = placement_.most();
  shape_.nodes = placement_.nodes();
  shape_.ranks = placement_.size();
  shape_.least = placement_.least();
  shape_.equal = placement_.equal();
  shape_.blocks = placement_.blocks();
}

Hierarchy::~Hierarchy() {
  if (near_.team) team::Team::close(std::move(near_.team));
}

// ---------------------------------------------------------------- node phases

// The ranks of a node may lack memory for a row that they have chosen without other nodes. Then the host carries.
void Hierarchy::on_node(Call call) {
  if (call.bytes == 0 && call.collective != Collective::barrier) return;
  if (!near_.team) {
    const auto blocks = std::size_t(locals());
    if (call.recv && call.recv != call.send) std::memcpy(call.recv, call.send, call.bytes * blocks);
    return;
  }
  try {
    if (near_.team->enabled && near_.chooser->perform(near_.team->context(), call)) return;
  } catch (const team::Refused&) {
    near_.team->enabled = false;  // on all of this node's ranks alike
  }
  on_node_by_transport(call);
}

void Hierarchy::on_node_by_transport(const Call& call) {
  constexpr unsigned slot = Transport::slots - 1;
  const auto p = std::size_t(locals());
  const bool root = local() == call.root;
  std::vector<std::size_t> bytes(p, call.bytes), at(p);
  for (std::size_t i = 0; i < p; ++i) at[i] = i * call.bytes;
  auto carry = [&](LaneTransfer transfer) {
    start(slot, Transport::within_node, transfer);
    wait(slot);
  };
  auto* const send = static_cast<std::byte*>(const_cast<void*>(call.send));
  auto* const recv = static_cast<std::byte*>(call.recv);
  auto fold = [&](const Room& operands) {
    std::vector<const void*> ins(p);
    for (std::size_t i = 0; i < p; ++i) ins[i] = operands.data() + at[i];
    void* out = call.recv;
    call.fold(&out, 1, ins.data(), p, call.count);
  };
  switch (call.collective) {
    case Collective::barrier: return carry({.move = Move::barrier});
    case Collective::bcast:
      return carry({.move = Move::bcast, .root = call.root, .to = root ? send : recv, .bytes = call.bytes});
    case Collective::gather:
      return carry(
          {.move = Move::gather, .root = call.root, .one = send, .bytes = call.bytes, .into = {recv, bytes, at}});
    case Collective::scatter:
      return carry(
          {.move = Move::scatter, .root = call.root, .to = recv, .bytes = call.bytes, .from = {send, bytes, at}});
    case Collective::allgather:
      return carry({.move = Move::allgather, .one = send, .bytes = call.bytes, .into = {recv, bytes, at}});
    case Collective::alltoall:
      return carry({.move = Move::alltoall, .from = {send, bytes, at}, .into = {recv, bytes, at}});
    case Collective::reduce: {
      const Room operands(*this, root ? p * call.bytes : 0);
      carry({.move = Move::gather,
             .root = call.root,
             .one = send,
             .bytes = call.bytes,
             .into = {operands.data(), bytes, at}});
      return root ? fold(operands) : void();
    }
    case Collective::reduce_scatter_block: {
      const Room operands(*this, p * call.bytes);
      carry({.move = Move::alltoall, .from = {send, bytes, at}, .into = {operands.data(), bytes, at}});
      return fold(operands);
    }
    default: throw team::Broken("a phase of a collective over nodes has no algorithm");
  }
}

void Hierarchy::node_barrier() { on_node({Collective::barrier}); }

namespace {
Call moving(Collective collective, const void* send, void* recv, std::size_t bytes, int root = 0) {
  return {.collective = collective, .bytes = bytes, .send = send, .recv = recv, .root = root};
}
Call reducing(const Call& call, Collective collective, const void* send, void* recv, std::size_t count, int root = 0) {
  Call part = call;
  part.collective = collective;
  part.bytes = count * reducing::size_of(call.type);
  part.count = count;
  part.send = send;
  part.recv = recv;
  part.root = root;
  return part;
}
}  // namespace

void Hierarchy::node_bcast(void* buffer, std::size_t bytes, int root) {
  const bool gives = local() == root;
  if (locals() > 1) on_node(moving(Collective::bcast, gives ? buffer : nullptr, gives ? nullptr : buffer, bytes, root));
}
void Hierarchy::node_gather(const void* one, void* all, std::size_t bytes, int root) {
  on_node(moving(Collective::gather, one, all, bytes, root));
}
void Hierarchy::node_scatter(const void* all, void* one, std::size_t bytes, int root) {
  on_node(moving(Collective::scatter, all, one, bytes, root));
}
void Hierarchy::node_allgather(const void* one, void* all, std::size_t bytes) {
  on_node(moving(Collective::allgather, one, all, bytes));
}
void Hierarchy::node_alltoall(const void* from, void* into, std::size_t bytes) {
  on_node(moving(Collective::alltoall, from, into, bytes));
}
void Hierarchy::node_reduce(const Call& call, const void* send, void* recv, std::size_t count, int root) {
  on_node(reducing(call, Collective::reduce, send, recv, count, root));
}
void Hierarchy::node_reduce_scatter_block(const Call& call, const void* send, void* recv, std::size_t count) {
  on_node(reducing(call, Collective::reduce_scatter_block, send, recv, count));
}

// ---------------------------------------------------------------- transfers

// The host is progressed by asking it. A rank that waits for the network keeps our own messages going.
void Hierarchy::wait(unsigned slot) {
  auto done = [&] { return transport_->done(slot); };
  const auto inspect = [&](std::uint64_t elapsed) {
    if (home_.hang_reporter()) home_.hang_reporter()->waits(elapsed, {});
  };
  if (!done())
    waiting::wait_slowly(home_.policy(), done,
                         {.others = home_.progress(), .inspect = inspect, .host = waiting::HostStep::by_flag});
  --under_way_;
}

// ---------------------------------------------------------------- rooms

Hierarchy::Room::Room(Hierarchy& hierarchy, std::size_t bytes) : hierarchy_(&hierarchy) {
  if (bytes == 0) return;
  if (auto found = hierarchy.home_.arena().allocate(bytes, 64, memory::Component::copy_buffers)) offset_ = *found;
  at_ = offset_ ? hierarchy.home_.segment().base() + offset_ : static_cast<std::byte*>(::operator new(bytes));
}

// After an error the host may go on to store to what has been given to it, and peers to what they know of: that memory
// is lost.
Hierarchy::Room::~Room() {
  if (!at_ || (std::uncaught_exceptions() && hierarchy_->under_way_)) return;
  if (offset_) hierarchy_->home_.arena().free(offset_);
  else ::operator delete(at_);
}

}  // namespace nearfield::hierarchy
