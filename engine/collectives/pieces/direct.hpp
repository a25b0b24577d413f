// Algorithms that load and store user buffers directly. The caller (collectives::run) has exchanged the buffers that
// the row names, so all of them can be reached.
//
//   member      publish buffers, post A, meet A | work on own share, straight between user buffers | post B, meet B
//
// B says that peers are done with a member's buffers and that their stores have arrived, so no member leaves before it.
// In rooted operations in which only the root and another member access each other's buffers, the others wait in B for
// the root alone.
#pragma once
#include "engine/collectives/pieces/folding.hpp"

namespace nearfield::collectives {

// Waits until the work of all members is done and visible. `root`: of an operation as above.
inline void finish_direct(CollectiveContext& context) { context.ticks.barrier(); }

inline void finish_direct(CollectiveContext& context, int root) {
  if (context.shape().meeting != Meeting::flags) return finish_direct(context);
  context.ticks.post_empty();
  if (context.rank() == root) {
    for (int r = 0; r < context.size(); ++r)
      if (r != root) context.ticks.wait(r, context.ticks.now());
  } else {
    context.ticks.wait(root, context.ticks.now());
  }
}

// Returns a share of a vector, in whole cache lines, so that no two members write the same line of aligned buffers.
inline Slice line_share(std::size_t total, std::size_t unit, std::size_t parts, std::size_t index) {
  constexpr std::size_t cache_line = 64;
  const std::size_t together = unit < cache_line ? cache_line / unit : 1;  // elements of a line
  const Slice lines = share(divide_up(total, together), parts, index);
  return {std::min(lines.begin * together, total), std::min(lines.end * together, total)};
}

// How a kernel's results reach buffers of others: stored from registers, or copied in pieces (folding.hpp), which is
// faster where the others have read these lines.
enum class Outputs { registers, pieces };

// Reduces the shares of ranks [first, last) from all send buffers and stores them to the receive buffers of ranks `to`.
template <Outputs by = Outputs::registers>
void reduce_direct(CollectiveContext& context, const Call& call, int first, int last, Slice to) {
  const auto p = std::size_t(context.size());
  const std::size_t element = call.bytes / call.count;
  const Slice part = {line_share(call.count, element, p, std::size_t(first)).begin,
                      line_share(call.count, element, p, std::size_t(last - 1)).end};
  if (!part.size()) return;
  auto inputs = context.inputs();
  auto outputs = context.outputs();
  for (std::size_t r = 0; r < p; ++r) inputs[r] = context.exchange.send_of(int(r)) + part.begin * element;
  for (std::size_t r = to.begin; r < to.end; ++r)
    outputs[r - to.begin] = context.exchange.recv_of(int(r)) + part.begin * element;
  if constexpr (by == Outputs::pieces)
    fold_for_others(call, nullptr, outputs.first(to.size()), inputs, part.size(), stage);
  else call.fold(outputs.data(), to.size(), inputs.data(), p, part.size());
}

// One copy divided between two members: all but 1/parts of it, and the rest.
struct Divided {
  std::size_t first;  // bytes of the first part
  std::size_t rest;
};
inline Divided divide(std::size_t bytes, std::size_t parts) {
  const std::size_t rest = bytes / parts / 64 * 64;
  return {bytes - rest, rest};
}

// Word that members publish beside their buffers (run() in table.cpp): the length of their vector or block, and whether
// this is a root whose own block needs no copy.
inline std::uint64_t note_for_peers(std::size_t length, bool in_place_at_root) {
  return length << 1 | in_place_at_root;
}
inline std::size_t exchanged_length(const CollectiveContext& context, int member) {
  const std::uint64_t note = context.exchange.note_of(member);
  return note == ~std::uint64_t{0} ? context::no_length : note >> 1;
}

// Length of a block that goes from one member to another; programs may have given them different lengths.
inline std::size_t exchanged_block(const CollectiveContext& context, int from, int to) {
  return std::min(exchanged_length(context, from), exchanged_length(context, to));
}

// Gather and scatter: divides the block between the root and `member`. There are p blocks for p ranks to copy, or one
// less if the root works in place and helps with the others'.
inline Divided root_share(const CollectiveContext& context, const Call& call, int member) {
  const std::size_t bytes = exchanged_block(context, call.root, member);
  if (!(context.exchange.note_of(call.root) & 1)) return {bytes, 0};
  return divide(bytes, std::size_t(context.size()));
}

}  // namespace nearfield::collectives
