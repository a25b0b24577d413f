// One collective call in the engine: contiguous buffers, element types by representation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/collectives/operations.hpp"
#include "engine/layout/layout.hpp"
#include "engine/reducing/fold.hpp"

namespace nearfield::collectives {

// `send` and `recv` are the buffers that operations.def says this member gives and gets. Equal addresses mean in place
// (InPlace): a rank's contribution lies where its result goes.
struct Call {
  Collective collective;
  std::size_t bytes = 0;  // length of one rank's vector or block
  const void* send = nullptr;
  void* recv = nullptr;
  int root = 0;
  std::size_t count = 0;  // elements in `bytes` (reductions)
  reducing::Type type = reducing::Type::none;
  reducing::Op op = reducing::Op::sum;
  reducing::FoldFn fold = nullptr;
  // parts[r]: element with which member r's part of a block begins; one more says where the last part ends. nullptr:
  // parts are as equal as possible, the first ones longer by one element.
  const std::size_t* parts = nullptr;
  // Layout of this member's vector in a broadcast, if it has gaps; `send` or `recv` is then room for it without gaps
  // (pieces/gaps.hpp). May be null.
  const layout::Data* gaps = nullptr;

  // Whether members have anything to do: a call of no bytes is complete at once, unless it meets, as a barrier does.
  bool does_anything() const { return bytes || operation(collective).moves_nothing(); }
};

// Collective, root and length in one word, for hang reports.
inline constexpr std::uint64_t packed_length = 0xffffffffff;
inline std::uint64_t pack(const Call& call) {
  return (std::uint64_t(call.collective) + 1) << 56 | std::uint64_t(call.root & 0xffff) << 40 |
         (call.bytes & packed_length);
}

// Describes such a word.
std::string describe_call(std::uint64_t packed);

}  // namespace nearfield::collectives
