// One collective call as the engine sees it: contiguous buffers, element types by representation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/collectives/operations.hpp"
#include "engine/layout/layout.hpp"
#include "engine/reducing/fold.hpp"

namespace nearfield::collectives {

// `send` and `recv` hold what operations.def says that this member gives and gets. In place is told by equal addresses
// (InPlace): what a rank contributes already lies where its result goes.
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
  // Where each member's part of a block begins, elements, and where the last one ends; nullptr: parts are as equal as
  // they can be, the first ones longer by one element.
  const std::size_t* parts = nullptr;
  // Where this member's vector lies, if it has gaps and this is a broadcast; `send` or `recv` is room for it without
  // them (pieces/gaps.hpp). nullptr: it lies there.
  const layout::Data* gaps = nullptr;
};

// Collective, root and length in one word, for reports about what a rank is doing.
inline constexpr std::uint64_t packed_length = 0xffffffffff;
inline std::uint64_t pack(const Call& call) {
  return (std::uint64_t(call.collective) + 1) << 56 | std::uint64_t(call.root & 0xffff) << 40 |
         (call.bytes & packed_length);
}

// What such a word tells.
std::string describe_call(std::uint64_t packed);

}  // namespace nearfield::collectives
