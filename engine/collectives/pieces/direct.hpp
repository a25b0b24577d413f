// Algorithms that load and store the users' buffers themselves. The caller (collectives::run) has exposed what the row
// asks for and met, so every buffer named by the row can be reached.
//
//   everybody   expose, post A, meet A | work on own share, straight between user buffers | post B, meet B
//
// Nobody leaves before B tells that peers are through with its buffers, and that what they store there has arrived.
// Between the members of rooted operations only the root knows everybody; the others wait for the root alone.
#pragma once
#include "engine/collectives/pieces/folding.hpp"

namespace nearfield::collectives {

// Everybody's work so far is done and visible.
inline void finish_direct(CollectiveContext& context) {
  context.post_empty();
  context.meet(context.tick());
}

inline void finish_direct(CollectiveContext& context, int root) {
  if (context.shape().meeting != Meeting::flags) return finish_direct(context);
  context.post_empty();
  if (context.rank() == root) {
    for (int r = 0; r < context.size(); ++r)
      if (r != root) context.wait_posted(r, context.tick());
  } else {
    context.wait_posted(root, context.tick());
  }
}

// Shares of a vector: whole cache lines, so that no two members write one (of aligned buffers).
inline Slice line_share(std::size_t total, std::size_t unit, std::size_t parts, std::size_t index) {
  constexpr std::size_t cache_line = 64;
  const std::size_t together = unit < cache_line ? cache_line / unit : 1;  // elements to each
  const Slice lines = share(divide_up(total, together), parts, index);
  return {std::min(lines.begin * together, total), std::min(lines.end * together, total)};
}

// How a kernel's results get into buffers of others: straight out of registers, or in pieces (folding.hpp), which is
// better where the others have read what lies there.
enum class Outputs { registers, pieces };

// The shares of ranks [first, last), reduced out of all send buffers, stored to the receive buffers of ranks `to`.
template <Outputs by = Outputs::registers>
void reduce_direct(CollectiveContext& context, const Call& call, int first, int last, Slice to) {
  const auto p = std::size_t(context.size());
  const std::size_t element = call.bytes / call.count;
  const Slice part = {line_share(call.count, element, p, std::size_t(first)).begin,
                      line_share(call.count, element, p, std::size_t(last - 1)).end};
  if (!part.size()) return;
  auto inputs = context.inputs();
  auto outputs = context.outputs();
  for (std::size_t r = 0; r < p; ++r) inputs[r] = context.send_of(int(r)) + part.begin * element;
  for (std::size_t r = to.begin; r < to.end; ++r)
    outputs[r - to.begin] = context.recv_of(int(r)) + part.begin * element;
  if constexpr (by == Outputs::pieces)
    fold_for_others(call, nullptr, outputs.first(to.size()), inputs, part.size(), stage);
  else call.fold(outputs.data(), to.size(), inputs.data(), p, part.size());
}

// How two members divide one copy: all but 1/parts of it, and the rest.
struct Divided {
  std::size_t first;  // bytes of the first part
  std::size_t rest;
};
inline Divided divide(std::size_t bytes, std::size_t parts) {
  const std::size_t rest = bytes / parts / 64 * 64;
  return {bytes - rest, rest};
}

// What members tell of themselves beside where their buffers are (run() in table.cpp): the length of their vector or
// block, and whether this is a root whose own block needs no copy.
inline std::uint64_t note_for_peers(std::size_t length, bool in_place_at_root) {
  return length << 1 | in_place_at_root;
}
inline std::size_t exposed_length(const CollectiveContext& context, int member) { return context.note_of(member) >> 1; }

// A block of one member that another one gets, where programs may have told them other lengths.
inline std::size_t exposed_block(const CollectiveContext& context, int from, int to) {
  return std::min(exposed_length(context, from), exposed_length(context, to));
}

// Gather and scatter: p blocks for p ranks to copy, or one block less when the root works in place. Of the block of
// the root and that member.
inline Divided root_share(const CollectiveContext& context, const Call& call, int member) {
  const std::size_t bytes = exposed_block(context, call.root, member);
  if (!(context.note_of(call.root) & 1)) return {bytes, 0};
  return divide(bytes, std::size_t(context.size()));
}

}  // namespace nearfield::collectives
