// Reductions in rank order, whatever the placement: the same bits on any number of nodes (NEARFIELD_REPRODUCIBLE). No
// node can combine its own operands first, so all of them cross: as many times the bytes as a node has ranks.
//
//   few bytes   everybody (the root) gets all operands and combines them
//   else        everybody gets a share of all operands, combines it, and gives it to all (to the root)
#include <algorithm>
#include <cstring>

#include "engine/hierarchy/groups.hpp"

namespace nearfield::hierarchy {
namespace {

using Room = Hierarchy::Room;

constexpr std::size_t gathered_bytes = 4096;

void move_blocks(Hierarchy& s, Collective collective, const void* send, void* recv, std::size_t bytes, int root,
                 Run* by_leaders, Run* by_lanes) {
  const Call call{.collective = collective, .bytes = bytes, .send = send, .recv = recv, .root = root};
  const bool lanes = bytes * std::size_t(s.size()) > 8 * gathered_bytes && lanes_apply(s.shape(), call);
  (lanes ? by_lanes : by_leaders)(s, call);
}

// `operands`: of all ranks, `apart` bytes each from the next.
void fold_ranks(const Hierarchy& s, const Call& call, const std::byte* operands, std::size_t apart, std::size_t count,
                void* result) {
  std::vector<const void*> ins(std::size_t(s.size()));
  for (std::size_t r = 0; r < ins.size(); ++r) ins[r] = operands + r * apart;
  if (count) call.fold(&result, 1, ins.data(), ins.size(), count);
}

}  // namespace

void reduce_in_order(Hierarchy& s, const Call& call) {
  const bool to_all = call.collective == Collective::allreduce, gets = to_all || s.rank() == call.root;
  const auto size = std::size_t(s.size()), rank = std::size_t(s.rank());
  const std::size_t element = reducing::size_of(call.type);
  auto collect = [&](const void* one, std::byte* all, std::size_t bytes) {
    if (to_all) move_blocks(s, Collective::allgather, one, all, bytes, 0, allgather_by_leaders, allgather_by_lanes);
    else move_blocks(s, Collective::gather, one, all, bytes, call.root, gather_by_leaders, gather_by_lanes);
  };
  if (call.bytes <= gathered_bytes) {
    const Room all(s, gets ? size * call.bytes : 0);
    collect(call.send, all.data(), call.bytes);
    if (gets) fold_ranks(s, call, all.data(), call.bytes, call.count, call.recv);
    return;
  }
  // Shares of one length, the last ones may be short or empty; what lies behind them is moved and not looked at.
  const std::size_t share = (call.count + size - 1) / size, bytes = share * element;
  const Room given(s, size * bytes), operands(s, size * bytes), own(s, bytes);
  std::memcpy(given.data(), call.send, call.bytes);
  std::memset(given.data() + call.bytes, 0, size * bytes - call.bytes);
  move_blocks(s, Collective::alltoall, given.data(), operands.data(), bytes, 0, alltoall_by_leaders, alltoall_by_lanes);
  const std::size_t begin = std::min(rank * share, call.count);
  fold_ranks(s, call, operands.data(), bytes, std::min(share, call.count - begin), own.data());
  collect(own.data(), given.data(), bytes);
  if (gets) std::memcpy(call.recv, given.data(), call.bytes);
}

void reduce_scatter_block_in_order(Hierarchy& s, const Call& call) {
  const Room operands(s, std::size_t(s.size()) * call.bytes);
  move_blocks(s, Collective::alltoall, call.send, operands.data(), call.bytes, 0, alltoall_by_leaders,
              alltoall_by_lanes);
  fold_ranks(s, call, operands.data(), call.bytes, call.count, call.recv);
}

}  // namespace nearfield::hierarchy
