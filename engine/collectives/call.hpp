// One collective call as the engine sees it: contiguous buffers, element types by representation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/reducing/fold.hpp"

namespace nearfield::collectives {

enum class Collective : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  allgather,
  alltoall,
  gather,
  scatter,
  reduce_scatter_block,
  count
};
inline constexpr std::size_t collective_count = std::size_t(Collective::count);
const char* name(Collective collective) noexcept;
// One member has or gets everything, and the others need not wait for each other.
inline bool rooted(Collective c) {
  return c == Collective::bcast || c == Collective::reduce || c == Collective::gather || c == Collective::scatter;
}

// In-place operation is expressed by equal addresses: what a rank contributes already lies where its result goes.
//   bcast       root: send, the others: recv
//   allgather   recv holds size * bytes, send may be recv + rank * bytes; gather likewise at the root
//   alltoall    both hold size * bytes, send may be recv
//   scatter     root's send holds size * bytes, recv may be send + root * bytes
//   reductions  send may be recv; reduce_scatter_block: send holds size * bytes, recv bytes
struct Call {
  Collective collective;
  std::size_t bytes = 0;  // of one rank's vector or block
  const void* send = nullptr;
  void* recv = nullptr;
  int root = 0;
  std::size_t count = 0;  // elements in `bytes` (reductions)
  reducing::Type type = reducing::Type::none;
  reducing::Op op = reducing::Op::sum;
  reducing::FoldFn fold = nullptr;
};

// Collective, root and length in one word, for reports about what a rank is doing.
inline std::uint64_t pack(const Call& call) {
  return (std::uint64_t(call.collective) + 1) << 56 | std::uint64_t(call.root & 0xffff) << 40 |
         (call.bytes & 0xffffffffff);
}

// What such a word tells.
std::string describe_call(std::uint64_t packed);

}  // namespace nearfield::collectives
